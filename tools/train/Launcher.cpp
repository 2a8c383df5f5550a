// SPDX-License-Identifier: Apache-2.0
#include "tools/train/Launcher.h"
#include "ir/base/Error.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstdlib>
#include <unistd.h>

namespace shardc {
namespace {

using Read = llvm::function_ref<const char *(const char *)>;

/// The only environment that is read.
struct Launcher {
  const char *name, *rank, *size;
  const char *localSize; ///< processes on this host
  const char *hosts;     ///< null where localSize tells
  const char *jobs[4];   ///< what makes the job's name; the processes share their values
};

// The first that is there counts: torchrun and mpirun may have been started by srun.
constexpr Launcher kLaunchers[] = {
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_WORLD_SIZE",
     nullptr,
     {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
    {"mpirun",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     nullptr,
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID", "PBS_JOBID"}},
    {"mpiexec",
     "PMI_RANK",
     "PMI_SIZE",
     "MPI_LOCALNRANKS",
     "SLURM_STEP_NUM_NODES",
     {"PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID", "PBS_JOBID"}},
    {"srun",
     "SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     nullptr,
     "SLURM_STEP_NUM_NODES",
     {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"}},
};

/// A number from `least` on.
llvm::Expected<unsigned> number(const char *name, llvm::StringRef text, unsigned least, const char *what) {
  unsigned value = 0;
  if (!text.trim().getAsInteger(10, value) && value >= least)
    return value;
  return userError("environment: " + llvm::Twine(name) + ": got \"" + text + "\", wanted " + what,
                   "it is set by torchrun, mpirun or srun; unset it to start one process");
}

llvm::Expected<unsigned> ranks(const char *name, llvm::StringRef text) {
  return number(name, text, 1, "a number of ranks");
}

/// Without a job's number the processes know each other by who started them.
std::string jobName(const Launcher &launcher, Read read) {
  std::string name = launcher.name;
  bool known = false;
  for (const char *job : launcher.jobs)
    if (const char *value = job ? read(job) : nullptr) {
      name += llvm::Twine(" ").concat(job).concat("=").concat(value).str();
      known = true;
    }
  return known ? name : name + " process " + std::to_string(getppid());
}

llvm::Error checkHosts(const Launcher &launcher, unsigned size, Read read) {
  auto refuse = [](const char *name, const llvm::Twine &got, const llvm::Twine &wanted) {
    return userError("environment: " + llvm::Twine(name) + ": more than one host is not built yet: got " +
                         got + ", wanted " + wanted,
                     "start all ranks on one host");
  };
  if (const char *text = launcher.localSize ? read(launcher.localSize) : nullptr) {
    auto local = ranks(launcher.localSize, text);
    if (!local)
      return local.takeError();
    if (*local != size)
      return refuse(launcher.localSize, llvm::Twine(*local) + " ranks on this host",
                    llvm::Twine(size) + " as in " + launcher.size);
  }
  if (const char *text = launcher.hosts ? read(launcher.hosts) : nullptr) {
    auto hosts = number(launcher.hosts, text, 1, "a number of hosts");
    if (!hosts)
      return hosts.takeError();
    if (*hosts != 1)
      return refuse(launcher.hosts, llvm::Twine(*hosts), "1");
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<std::optional<Launch>> readLaunch(Read read) {
  for (const Launcher &launcher : kLaunchers) {
    const char *text = read(launcher.size);
    if (!text)
      continue;
    auto size = ranks(launcher.size, text);
    if (!size)
      return size.takeError();
    if (*size == 1)
      return std::nullopt;
    const char *rankText = read(launcher.rank);
    if (!rankText)
      return userError("environment: " + llvm::Twine(launcher.size) + " is " + llvm::Twine(*size) + ", but " +
                           launcher.rank + " is not set",
                       "both are set by " + llvm::Twine(launcher.name) + "; unset it to start one process");
    auto rank = number(launcher.rank, rankText, 0, "a rank");
    if (!rank)
      return rank.takeError();
    if (*rank >= *size)
      return userError("environment: " + llvm::Twine(launcher.rank) + ": got " + llvm::Twine(*rank) +
                           ", wanted a rank below " + llvm::Twine(*size) + " as in " + launcher.size,
                       "ranks count from 0");
    if (llvm::Error error = checkHosts(launcher, *size, read))
      return error;
    return Launch{*rank, *size, jobName(launcher, read)};
  }
  return std::nullopt;
}

} // namespace shardc
