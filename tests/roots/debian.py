"""A bare Debian with nothing in it but what a user would have, in a folder that debootstrap makes."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "context-sidecar-tests"
"""Where real hosts are installed too."""
MIRROR = "http://deb.debian.org/debian"
PATH = "/usr/local/bin:/usr/bin:/bin"
LIMIT_S = 240
_PASSED_ON = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "http_proxy", "https_proxy", "no_proxy")
_CERTIFICATES = "/etc/ssl/certs"
_ENTER = """
set -e
root=$1; shift
mount -t overlay overlay -o "$1" "$root"; shift
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do
    if [ -d "$1" ]; then mkdir -p "$root$2"; else mkdir -p "$root$(dirname "$2")"; touch "$root$2"; fi
    mount --bind "$1" "$root$2"; shift 2
done; shift
exec chroot "$root" env -i "$@"
"""


def debian(suite: str, *packages: str) -> Path:
    """A Debian of a suite with some packages, made once and then left as it is."""
    folder = CACHE / "-".join(("debian", suite, *packages))
    if not (folder / "complete").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        include = ",".join(("ca-certificates", *packages))
        # A suite that is newer than this debootstrap is made as the newest one is.
        scripts = Path("/usr/share/debootstrap/scripts")
        script = [] if (scripts / suite).exists() else ["http://deb.debian.org/debian", str(scripts / "sid")]
        command = [
            "debootstrap",
            "--variant=minbase",
            f"--include={include}",
            suite,
            str(folder / "root"),
            *script,
        ]
        with (folder / "log").open("wb") as log:
            subprocess.run(command, check=True, stdout=log, stderr=log, timeout=900)
        (folder / "complete").touch()
    return folder / "root"


class Root:
    """Runs commands in such a Debian; what they write stays in a folder of the caller's."""

    def __init__(self, base: Path, folder: Path) -> None:
        self.upper, self._work, self._merged = (folder / name for name in ("upper", "work", "merged"))
        for each in (self.upper, self._work, self._merged):
            each.mkdir(parents=True)
        self._options = f"lowerdir={base},upperdir={self.upper},workdir={self._work}"
        self._shown = {Path("/etc/resolv.conf"): "/etc/resolv.conf", Path(_CERTIFICATES): _CERTIFICATES}
        self.environment = {"HOME": "/root", "PATH": PATH, "LANG": "C.UTF-8", "TERM": "dumb"}
        self.environment |= {name: os.environ[name] for name in _PASSED_ON if name in os.environ}

    def show(self, path: Path, name: str) -> str:
        """Make a file or folder of this machine visible by an absolute path in there."""
        self._shown[path.resolve()] = name
        return name

    def write(self, name: str, text: str) -> None:
        """Write a file by its absolute path in there."""
        path = self.inside(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def inside(self, name: str) -> Path:
        """Where an absolute path in there is found from outside, if it was written there."""
        return self.upper / name.lstrip("/")

    def unpack(self, tarball: Path, folder: str) -> None:
        """Unpack a package of npm below an absolute path in there."""
        with tarfile.open(tarball) as archive:
            for member in archive.getmembers():
                member.name = member.name.partition("/")[2]
                archive.extract(member, self.inside(folder), filter="data")

    def command(self, *command: str, **environment: str) -> list[str]:
        """The whole command that runs one in there."""
        shown = [text for path, name in self._shown.items() for text in (str(path), name)]
        variables = [f"{name}={value}" for name, value in (self.environment | environment).items()]
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _ENTER, "enter"]
        return [*enter, str(self._merged), self._options, *shown, "--", *variables, *command]

    def run(self, *command: str, code: int = 0, limit_s: float = LIMIT_S, **environment: str) -> str:
        """What a command printed, both streams together."""
        done = subprocess.run(
            self.command(*command, **environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            timeout=limit_s,
            check=False,
        )
        assert done.returncode == code, f"{command} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout
