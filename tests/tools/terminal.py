# SPDX-License-Identifier: Apache-2.0
"""What a command says where its standard output is a terminal."""
import fcntl
import os
import pty
import struct
import subprocess
import termios


def on_terminal(columns, *command):
    """The text. Asserts that the command exits with 0."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(command, stdout=theirs)
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 4096):
            said += part
    except OSError:                            # the other end is closed
        pass
    assert process.wait() == 0, command
    return said.decode().replace("\r\n", "\n")
