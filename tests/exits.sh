#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# exits.sh CODE COMMAND...: succeeds if the command ends with exactly this exit code. Its output passes through.
want=$1
shift
"$@"
got=$?
[ "$got" = "$want" ] && exit 0
echo "exit code: got $got, wanted $want: $*" >&2
exit 1
