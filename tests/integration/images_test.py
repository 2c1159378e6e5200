"""Images: every form they are saved in, what of their configuration is honoured, and a store that survives anything."""

import fcntl
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import TOP, Case, both_callers, main, root_only, shared_folder

sys.path.insert(0, str(TOP / "tests" / "images"))
from saved_images import Image, Layer, busybox_layer, busybox_tree, digest, pack  # noqa: E402


def tree_hash(folder: Path, times: bool = True) -> str:
    """Of names, metadata and contents."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        total.update(f"{path.relative_to(folder)} {status.st_mode} {status.st_uid} {status.st_gid} {status.st_nlink}".encode())
        if times:
            total.update(f"{status.st_mtime_ns} {status.st_ctime_ns}".encode())
        if path.is_symlink():
            total.update(os.readlink(path).encode())
        elif path.is_file():
            total.update(path.read_bytes())
    return total.hexdigest()


class ImageCase(Case):
    def setUp(self):
        super().setUp()
        self.store = self.folder / "images"
        self.work = shared_folder() / f"work-{os.getpid()}-{self.id()}"  # what the caller need not be able to write
        self.work.mkdir()
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)

    def environment(self, extra=None):
        return {**super().environment(), "BELLJAR_IMAGES": str(self.store), **(extra or {})}

    def busybox(self) -> Layer:
        return busybox_layer(self.work / "tree")

    def image(self, *more: Layer, packing: str = "gzip", **config) -> Image:
        return Image([self.busybox(), *more], config=config, packing=packing)

    def saved(self, *more: Layer, **config) -> Path:
        return self.image(*more, **config).write_oci_archive(self.work / "image.tar")

    def images(self, *arguments, **options):
        return self.belljar("image", *arguments, **options)

    def load(self, name: str, source: Path, *flags: str) -> str:
        ended = self.images("load", *flags, name, source)
        self.assertEqual(ended.status, 0, str(ended))
        self.assertEqual(ended.err, b"", str(ended))
        return ended.text

    def inspect(self, name: str) -> dict:
        return json.loads(self.images("inspect", "--json", name).text)

    def names(self) -> list[str]:
        return [image["name"] for image in json.loads(self.images("ls", "--json").text)["images"]]

    def trees(self) -> list[Path]:
        return sorted((self.store / "trees").iterdir())

    def assert_nothing_half(self):
        self.assertEqual(list((self.store / "building").iterdir()), [])


@both_callers
class Forms(ImageCase):
    def assert_runs(self, name: str):
        self.assertEqual(self.ok("--image", name, "--", "cat", "/etc/mark"), "upper")
        gone = self.run_in("--image", name, "--", "cat", "/etc/gone")
        self.assertEqual(gone.status, 1, str(gone))

    def layered(self, packing: str) -> Image:
        lower = self.busybox().file("etc/mark", b"lower").file("etc/gone", b"lower").file("var/lib/x/old", b"old")
        upper = Layer().file("etc/mark", b"upper").entry("etc/.wh.gone").folder("var/lib/x").entry("var/lib/x/.wh..wh..opq")
        return Image([lower, upper], packing=packing)

    def test_oci_archives_and_layouts_with_every_packing(self):
        for packing in ("plain", "gzip", "zstd", "xz"):
            with self.subTest(packing=packing):
                shutil.rmtree(self.work / "tree", ignore_errors=True)
                image = self.layered(packing)
                said = self.load("archive", image.write_oci_archive(self.work / "a.tar"))
                self.assertIn("OCI archive, 2 layers", said)
                self.assert_runs("archive")
                self.assertIn("OCI layout", self.load("layout", image.write_oci_layout(self.work / packing)))
                self.assert_runs("layout")
                found = self.inspect("archive")
                self.assertEqual(found["config_digest"], digest(image.config))
                self.assertEqual(found["manifest_digest"], digest(image.manifest))
                self.assertEqual([layer["diff_id"] for layer in found["layers"]], [digest(tar) for tar in image.tars])
                self.assertEqual(found["layers"][0]["digest"], digest(pack(image.tars[0], packing)))
                self.assertEqual(found["tree"], self.inspect("layout")["tree"])
                self.assertEqual(self.ok("--image", "archive", "--", "find", "/var/lib/x"), "/var/lib/x\n")

    def test_docker_archives(self):
        image = self.layered("plain")
        for packing in ("plain", "gzip"):
            self.assertIn("docker archive, 2 layers",
                          self.load(packing, image.write_docker_archive(self.work / f"{packing}.tar", packing)))
            self.assert_runs(packing)
        self.assertEqual(len(self.trees()), 1)
        # The same layer twice is a link in the archive.
        again = Image([self.busybox_again(), Layer().file("etc/mark", b"upper"), Layer().file("etc/mark", b"upper")])
        self.load("twice", again.write_docker_archive(self.work / "twice.tar", config_name="config.json"))
        self.assert_runs("twice")

    def busybox_again(self) -> Layer:
        return busybox_layer(self.work / "tree2")

    def test_packed_oci_archive(self):
        self.load("packed", self.layered("zstd").write_oci_archive(self.work / "a.tar.xz", "xz"))
        self.assert_runs("packed")
        self.assert_nothing_half()

    def test_root_file_systems(self):
        tree = busybox_tree(self.work / "tree")
        (tree / "etc/mark").write_text("upper")
        (tree / "etc/.wh.kept").write_text("no whiteout here")
        subprocess.run(["tar", "-C", tree, "-czf", self.work / "dots.tar.gz", "."], check=True)
        subprocess.run(["tar", "-C", tree, "--format=pax", "-cf", self.work / "bare.tar", "bin", "etc", "usr"], check=True)
        (tree / "root").chmod(0o755)  # for the caller
        for name, source in (("dots", "dots.tar.gz"), ("bare", "bare.tar"), ("folder", "tree")):
            with self.subTest(source=source):
                self.assertIn("root file system", self.load(name, self.work / source))
                self.assert_runs(name)
                self.assertEqual(self.ok("--image", name, "--", "cat", "/etc/.wh.kept"), "no whiteout here")

    def test_a_damaged_packed_root_file_system_is_refused(self):
        sound = pack(self.busybox().file("etc/mark", random.Random(3).randbytes(200_000)).tar(), "gzip")
        self.load("sound", self.written("sound.tar.gz", sound))
        ends = {"its checksum": -8, "its length": -1}
        for what, at in {**ends, "a content that does not pack": -100_000}.items():
            with self.subTest(damaged=what):
                bytes_ = bytearray(sound)
                bytes_[at] ^= 0x10
                ended = self.images("load", "damaged", self.written("damaged.tar.gz", bytes(bytes_)))
                self.assert_refused(ended, 125, "damaged.tar.gz: can't be unpacked: its gzip stream is damaged")
        self.assertEqual(self.names(), ["sound"])
        self.assert_nothing_half()

    def written(self, name: str, content: bytes) -> Path:
        (self.work / name).write_bytes(content)
        return self.work / name

    def test_a_folder_with_mounts_below_it(self):
        tree = busybox_tree(self.work / "tree")
        (tree / "etc/mark").write_text("upper")
        (tree / "etc/gone").write_text("covered")
        (tree / "mnt").mkdir()
        (tree / "mnt/covered").write_text("x")
        (tree / "root").chmod(0o755)  # for the caller
        (self.work / "other").write_text("not of the image")
        script = 'mount --bind "$1" "$2/mnt" && mount --bind "$1/other" "$2/etc/gone" && shift 2 && exec "$@"'
        command = self.argv("image", "load", "mounts", tree)
        at = command.index(str(shared_folder() / "belljar"))  # who the caller is comes first
        user = [] if self.caller_id == 0 else ["--user", "--map-root-user"]
        command[at:at] = ["unshare", *user, "--mount", "sh", "-c", script, "sh", self.work, tree]
        loaded = subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=False)
        self.assertEqual(loaded.returncode, 0, loaded.stderr)
        self.assertEqual(self.ok("--image", "mounts", "--", "sh", "-c", "ls /mnt; cat /etc/gone /etc/mark"), "upper")

    def test_indexes_in_indexes_and_other_platforms(self):
        image = self.layered("gzip")
        other = {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "sha256:" + "0" * 64, "size": 3,
                 "platform": {"os": "linux", "architecture": "arm64"}}
        ours = {**json.loads(image.index)["manifests"][0], "platform": {"os": "linux", "architecture": "amd64"}}
        inner = json.dumps({"schemaVersion": 2, "manifests": [other, ours]}).encode()
        outer = image.add("application/vnd.oci.image.index.v1+json", inner)
        image.index = json.dumps({"schemaVersion": 2, "manifests": [outer]}).encode()
        self.load("nested", image.write_oci_archive(self.work / "nested.tar"))
        self.assert_runs("nested")

    def test_what_debians_tools_save(self):
        for tool in ("skopeo", "umoci"):
            self.need(tool)
        layout = self.work / "layout"
        run = lambda *argv: subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # noqa: E731
        bundle = self.work / "bundle"
        run("umoci", "init", "--layout", layout)
        run("umoci", "new", "--image", f"{layout}:base")
        rootless = [] if os.geteuid() == 0 else ["--rootless"]
        run("umoci", "unpack", *rootless, "--image", f"{layout}:base", bundle)
        tree = busybox_tree(self.work / "tree")
        (tree / "etc/gone").write_text("x")
        shutil.copytree(tree, bundle / "rootfs", symlinks=True, dirs_exist_ok=True)
        run("umoci", "repack", "--refresh-bundle", "--image", f"{layout}:base", bundle)
        (bundle / "rootfs/etc/gone").unlink()
        (bundle / "rootfs/etc/mark").write_text("upper")
        run("umoci", "repack", "--image", f"{layout}:base", bundle)
        run("umoci", "config", "--image", f"{layout}:base", "--config.cmd", "cat", "--config.cmd", "/etc/mark",
            "--config.env", "MADE=umoci")
        run("umoci", "gc", "--layout", layout)
        run("chmod", "-R", "a+rX", layout)
        run("skopeo", "--insecure-policy", "copy", f"oci:{layout}:base", f"docker-archive:{self.work}/docker.tar:base:1")
        run("skopeo", "--insecure-policy", "copy", f"oci:{layout}:base", f"oci-archive:{self.work}/oci.tar:base")
        for name, source in (("layout", layout), ("docker", self.work / "docker.tar"), ("oci", self.work / "oci.tar")):
            with self.subTest(source=source):
                self.load(name, source)
                self.assert_runs(name)
                self.assertEqual(self.ok("--image", name), "upper")
                self.assertIn("MADE=umoci\n", self.ok("--image", name, "--", "env"))

    def test_what_podman_imports(self):
        self.need("podman")
        if os.geteuid() != 0:
            return self.not_covered("images of podman as a user", "podman wants a range of /etc/subuid; as root it is tried")
        store = tempfile.mkdtemp(prefix="belljar-", dir="/tmp")  # podman takes no runroot of more than 50 characters
        self.addCleanup(shutil.rmtree, store)
        podman = ["podman", "--root", f"{store}/root", "--runroot", f"{store}/run", "--storage-driver", "vfs"]
        run = lambda *argv: subprocess.run([*podman, *argv], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # noqa: E731
        tree = busybox_tree(self.work / "tree")
        (tree / "etc/mark").write_text("upper")
        subprocess.run(["tar", "-C", tree, "-cf", self.work / "tree.tar", "."], check=True)
        run("import", "--change", 'CMD ["cat","/etc/mark"]', "--change", "ENV MADE=podman", self.work / "tree.tar", "base")
        for kind in "docker-archive", "oci-archive":
            with self.subTest(kind=kind):
                saved = self.work / f"{kind}.tar"
                run("save", "--format", kind, "--output", saved, "base")
                saved.chmod(0o644)
                self.load(kind, saved)
                self.assert_runs(kind)
                self.assertEqual(self.ok("--image", kind), "upper")
                self.assertIn("MADE=podman\n", self.ok("--image", kind, "--", "env"))


@root_only
class WholeDistribution(ImageCase):
    """A Debian that mmdebstrap makes from the package archive."""

    def test_a_debian(self):
        self.need("mmdebstrap")
        saved = self.work / "debian.tar"
        sources = Path("/etc/apt/sources.list")
        made = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", "--include=python3-minimal", "bookworm", saved,
                               *([sources] if sources.exists() and sources.read_text().strip() else [])],
                              capture_output=True, text=True, check=False)
        self.assertIn(made.returncode, (0, 1, 25), made.stderr[-2000:])
        self.load("debian", saved)
        before = tree_hash(self.trees()[0])
        program = self.write("here.py", "import os, sys\nprint(open('/etc/debian_version').read()[:2], sys.executable, os.getuid())")
        self.assertEqual(self.ok("--image", "debian", program), "12 /usr/bin/python3 0\n")
        self.assertEqual(self.ok("--image", "debian", "--", "sh", "-c", "dpkg -l | grep -c ^ii; echo x 2>/dev/null > /etc/x || echo kept").split()[-1], "kept")
        self.run_in("--image", "debian", "--", "sh", "-c", "chmod -R 777 / ; rm -rf /usr /etc /var; apt-get update")
        self.assertEqual(tree_hash(self.trees()[0]), before)
        self.assertEqual(self.images("rm", "debian").status, 0)


@both_callers
class Configuration(ImageCase):
    def test_is_honoured_where_the_caller_says_nothing(self):
        source = self.saved(Layer().folder("srv/app", uid=1234, gid=2345), User="app", WorkingDir="/srv/app",
                            Env=["GREETING=hello", "PATH=/bin:/extra", "HOME=/opt"], Entrypoint=["sh", "-c"],
                            Cmd=["id -u; id -g; pwd; echo $GREETING $PATH $HOME"])
        self.load("app", source)
        self.assertEqual(self.ok("--image", "app"), "1234\n2345\n/srv/app\nhello /bin:/extra /opt\n")
        self.assertEqual(self.ok("--image", "app", "--workdir", "/etc", "-e", "GREETING=bye", "--", "sh", "-c",
                                 "pwd; echo $GREETING"), "/etc\nbye\n")
        self.assertEqual(self.inspect("app")["config"]["user"], "app")

    def test_its_working_folder_is_made_where_it_is_missing(self):
        where = Layer().folder("opt/full").file("opt/full/x").link("short", "/opt/full").file("file")
        for number, path in enumerate(("/srv/app/deep", "opt/full/new", "/short/linked", "/new")):
            with self.subTest(path=path):
                shutil.rmtree(self.work / "tree", ignore_errors=True)
                name = f"n{number}"
                self.load(name, self.saved(where, WorkingDir=path))
                text = self.ok("--image", name, "--", "sh", "-c", "pwd -P; stat -c '%a %u %g' .; ls; touch x 2>/dev/null || echo kept")
                real = {"/short/linked": "/opt/full/linked", "opt/full/new": "/opt/full/new"}.get(path, path)
                self.assertEqual(text, f"{real}\n755 0 0\nkept\n")
        self.load("root", self.saved_again(where, WorkingDir="/"))
        self.assertEqual(self.ok("--image", "root", "--", "pwd"), "/\n")
        self.assert_refused(self.images("load", "bad", self.saved_again(where, WorkingDir="/file/below")), 125,
                            "the image's WorkingDir \"/file/below\" can't be made: Not a directory")

    def test_a_working_folder_that_is_made_is_in_no_other_image(self):
        for name, config in (("plain", {}), ("made", {"WorkingDir": "/made/here"}), ("again", {"WorkingDir": "/made/here"})):
            shutil.rmtree(self.work / "tree", ignore_errors=True)
            self.load(name, self.saved(**config))
        self.assertEqual(len(self.trees()), 2)
        self.assertNotEqual(self.run_in("--image", "plain", "--", "ls", "/made").status, 0)
        self.assertEqual(self.ok("--image", "again", "--", "pwd"), "/made/here\n")

    def test_without_one_the_defaults_stay(self):
        self.load("plain", self.saved())
        text = self.ok("--image", "plain", "--", "sh", "-c", "pwd; echo $HOME; touch ~/x /tmp/y /dev/shm/z && echo written; id -u")
        self.assertEqual(text, "/tmp/home\n/tmp/home\nwritten\n0\n")
        ended = self.run_in("--image", "plain")
        self.assert_refused(ended, 125, "the image plain names no program")

    def test_root_of_an_image_has_no_capabilities(self):
        self.load("plain", self.saved())
        text = self.ok("--image", "plain", "--", "sh", "-c",
                       "grep -E 'Uid|Gid|CapPrm|CapEff|CapBnd|NoNewPrivs' /proc/self/status; grep -c . /proc/self/setgroups")
        self.assertEqual(text.split(), "Uid: 0 0 0 0 Gid: 0 0 0 0 CapPrm: 0000000000000000 CapEff: 0000000000000000 "
                         "CapBnd: 0000000000000000 NoNewPrivs: 1 1".split())

    def test_its_root_can_change_no_settings(self):
        self.load("plain", self.saved())
        for path in ("net/ipv4/ip_forward", "net/ipv4/ping_group_range", "kernel/shmmax", "kernel/hostname", "user/max_user_namespaces"):
            ended = self.run_in("--image", "plain", "--", "sh", "-c", f"cat /proc/sys/{path} > /proc/sys/{path}")
            self.assertNotEqual(ended.status, 0, path)

    def test_files_keep_their_owners(self):
        layer = Layer().file("opt/theirs", b"x", uid=1234, gid=2345, mode=0o640).file("opt/far", b"x", uid=70000, gid=2**31)
        self.load("owners", self.saved(layer))
        text = self.ok("--image", "owners", "--", "stat", "-c", "%n %u %g %a", "/opt/theirs", "/opt/far", "/bin/busybox")
        if self.caller_id == 0:
            self.assertEqual(text, "/opt/theirs 1234 2345 640\n/opt/far 65534 65534 644\n/bin/busybox 0 0 755\n")
        else:  # one id is all that an ordinary user has
            self.assertEqual(text, "/opt/theirs 0 0 640\n/opt/far 0 0 644\n/bin/busybox 0 0 755\n")
        self.assertEqual(self.inspect("owners")["left_out"]["foreign_ids"], 1)

    def test_scripts(self):
        script = self.write("job.sh", "#!/bin/sh\necho $0 $1; cat /etc/passwd | wc -l\n")
        self.load("plain", self.saved())
        self.assertEqual(self.ok("--image", "plain", script, "one"), "/app/job.sh one\n2\n")
        self.load("app", self.saved_again(Layer().file("app/main", b"mine")))
        self.assertEqual(self.ok("--image", "app", script, "two"), "/script/job.sh two\n2\n")
        self.load("both", self.saved_again(Layer().file("app/main", b"mine").file("script/x", b"mine")))
        self.assert_refused(self.run_in("--image", "both", script), 125, "/app and /script")

    def saved_again(self, *more: Layer, **config) -> Path:
        shutil.rmtree(self.work / "tree")
        return self.saved(*more, **config)

    def test_mounts(self):
        self.load("app", self.saved(Layer().file("app/main", b"mine").folder("empty").file("opt/full", b"x")))
        self.write("data", "the caller's")
        for place in ("/data", "/new/place", "/empty", "/empty/below", "/app"):
            self.assertEqual(self.ok("--image", "app", "--mount", f"{self.folder}:{place}", "--", "cat", f"{place}/data"),
                             "the caller's", place)
        self.assertEqual(self.ok("--image", "app", "--mount", f"{self.folder}:/data:rw", "--", "sh", "-c",
                                 "echo new > /data/made; stat -c %u /data/made"), "0\n")
        self.assertEqual((self.folder / "made").stat().st_uid, self.caller_id)
        self.assert_refused(self.run_in("--image", "app", "--mount", f"{self.folder}:/opt/new", "--", "true"), 125,
                            "no such place")
        script = self.write("s.sh", "#!/bin/sh\ncat /app/data")
        self.assertEqual(self.ok("--image", "app", "--mount", f"{self.folder}:/app", script), "the caller's")

    def test_odd_users_are_refused_when_loading(self):
        for user in ("-1", "4294967296", "nobody-here", "1000:none", "65536", "0:0:0", "x" * 10000):
            with self.subTest(user=user[:20]):
                shutil.rmtree(self.work / "tree", ignore_errors=True)
                ended = self.images("load", "odd", self.saved(User=user))
                self.assert_refused(ended, 125, "the image's user")
        self.assertEqual(self.names(), [])
        self.assertEqual(self.trees(), [])

    def test_venv_is_the_hosts(self):
        self.load("plain", self.saved())
        (self.folder / "venv/bin").mkdir(parents=True)
        self.assert_refused(self.run_in("--image", "plain", "--venv", self.folder / "venv", "--", "true"), 125, "--venv")


@both_callers
class Names(ImageCase):
    def test_unknown_names_list_the_known(self):
        self.assert_refused(self.run_in("--image", "nope", "--", "true"), 125, "none is loaded yet")
        self.load("one", self.saved())
        self.load("two:1.0", self.work / "image.tar")
        for command in (("run", "--image", "nope", "--", "true"), ("image", "inspect", "nope"), ("image", "rm", "nope")):
            self.assert_refused(self.belljar(*command), 125, "there are: one, two:1.0")
        self.assertEqual(self.names(), ["one", "two:1.0"])

    def test_names_that_are_none(self):
        for name in ("", "a b", "-x", "é", "a\n", "x" * 129):
            ended = self.images("load", "--", name, "whatever")
            self.assertEqual(ended.status, 125, name)

    def test_a_name_can_be_given_anew(self):
        self.load("app", self.saved(Cmd=["echo", "one"]))
        shutil.rmtree(self.work / "tree")
        first = self.trees()
        self.load("app", self.saved(Layer().file("new", b"x"), Cmd=["echo", "two"]))
        self.assertEqual(self.ok("--image", "app"), "two\n")
        self.assertEqual(len(self.trees()), 1)
        self.assertNotEqual(self.trees(), first)

    def test_one_tree_may_have_two_configurations(self):
        tree = self.busybox()
        for name in ("one", "two"):
            image = Image([tree], config={"Cmd": ["echo", name]})
            self.load(name, image.write_oci_archive(self.work / f"{name}.tar"))
        self.assertEqual(len(self.trees()), 1)
        self.assertEqual(self.ok("--image", "one"), "one\n")
        self.assertEqual(self.ok("--image", "two"), "two\n")

    def test_paths_load_on_first_use_and_after_a_change(self):
        source = self.saved(Cmd=["echo", "one"])
        self.assertEqual(self.ok("--image", source), "one\n")
        before = self.trees()[0].stat().st_ctime_ns
        self.assertEqual(self.ok("--image", source), "one\n")
        self.assertEqual(self.trees()[0].stat().st_ctime_ns, before)
        self.assertEqual(self.names(), [str(source)])
        for word in ("two", "three"):  # in the same file, and in another of that name
            shutil.rmtree(self.work / "tree")
            if word == "three":
                source.rename(self.work / "old.tar")
            self.saved(Layer().file("more", word.encode()), Cmd=["echo", word])
            self.assertEqual(self.ok("--image", source), word + "\n")
            self.assertEqual(self.names(), [str(source)])
            self.assertEqual(len(self.trees()), 1)
        self.assertIn("removed 0 things", self.images("gc").text)
        source.unlink()
        self.assertIn("removed 2 things", self.images("gc").text)
        self.assertEqual(self.trees(), [])
        self.assert_refused(self.run_in("--image", source, "--", "true"), 125, "No such file")

    def test_images_by_path_are_seen_and_removed_as_others(self):
        source = self.saved()
        self.ok("--image", source, "--", "echo")
        self.assertRegex(self.images("ls").text, rf"(?m)^{source} +[0-9a-f]{{12}} .* no$")
        self.assertRegex(self.images("inspect", "./image.tar", cwd=self.work).text, rf"(?m)^name +\./image\.tar$")
        self.assertEqual(self.inspect(source)["source"], str(source))
        run = self.start("run", "--image", source, "--timeout", "60s", "--", "sh", "-c", "echo up; sleep 60")
        self.addCleanup(run.communicate)
        self.addCleanup(run.terminate)
        self.assertEqual(run.stdout.readline(), b"up\n")
        self.assertTrue(self.inspect(source)["in_use"])
        self.assert_refused(self.images("rm", source), 125, "a running sandbox uses the image")
        run.terminate()
        run.wait()
        source.unlink()
        self.assertEqual(self.images("rm", "./image.tar", cwd=self.work).text, "removed ./image.tar\n")
        self.assertEqual((self.names(), self.trees()), ([], []))
        for verb in ("rm", "inspect"):
            self.assert_refused(self.images(verb, source), 125, "no image was loaded by the path")

    def test_layouts_by_path(self):
        layout = self.image(Cmd=["echo", "here"]).write_oci_layout(self.work / "layout")
        self.assertEqual(self.ok("--image", layout), "here\n")
        self.assertEqual(self.ok("--image", "./layout", cwd=self.work), "here\n")
        self.assert_refused(self.run_in("--image", self.work / "tree", "--", "true"), 125, "belljar image load NAME FOLDER")

    def test_an_image_can_be_named_in_a_policy(self):
        self.load("app", self.saved(Cmd=["echo", "policy"]))
        policy = self.write("p.toml", 'image = "app"\n')
        self.assertEqual(self.ok("--policy", policy), "policy\n")
        self.assertIn('image = "app"', self.belljar("policy", "show", "--image", "app").text)

    def test_listing(self):
        self.load("app", self.saved())
        text = self.images("ls").text
        self.assertRegex(text, r"(?m)^NAME +TREE +SIZE +LOADED +IN USE$")
        self.assertRegex(text, r"(?m)^app +[0-9a-f]{12} +[0-9.]+ MiB .* no$")
        self.assertRegex(self.images("inspect", "app").text, r"(?m)^user +root \(uid 0, gid 0\)$")
        self.assertEqual(self.images("rm", "app").text, "removed app\n")
        self.assertEqual(self.names(), [])


@both_callers
class Store(ImageCase):
    def test_no_run_changes_an_image(self):
        self.load("app", self.saved(Layer().file("opt/mine", b"x", mode=0o666, uid=0)))
        root = self.trees()[0] / "root"
        before = tree_hash(root)
        code = ("for f in $(find / -xdev 2>/dev/null) /etc/passwd /opt/mine /bin/busybox; do "
                "echo x > $f; chmod 777 $f; touch $f; chown 5 $f; rm -rf $f; done; mkdir /etc/new; mount -o remount,rw /etc; true")
        self.run_in("--image", "app", "--timeout", "60s", "--", "/bin/busybox", "sh", "-c", code)
        self.assertEqual(tree_hash(root), before)
        self.assertEqual(self.ok("--image", "app", "--", "cat", "/opt/mine"), "x")

    def test_rm_refuses_what_runs(self):
        self.load("app", self.saved())
        self.load("twin", self.work / "image.tar")
        run = self.start("run", "--image", "app", "--timeout", "60s", "--", "sh", "-c", "echo up; sleep 60")
        self.addCleanup(run.communicate)
        self.addCleanup(run.terminate)
        self.assertEqual(run.stdout.readline(), b"up\n")
        self.assertEqual([image["in_use"] for image in json.loads(self.images("ls", "--json").text)["images"]], [True, False])
        self.assert_refused(self.images("rm", "app"), 125, "a running sandbox uses the image")  # though its tree would stay
        self.assertRegex(self.images("inspect", "app").text, r"(?m)^in use +yes$")
        self.assertEqual(self.images("rm", "twin").status, 0)  # the tree stays
        self.assert_refused(self.images("rm", "app"), 125, "a running sandbox uses the image")
        self.assertEqual(self.ok("--image", "app", "--", "echo", "still there"), "still there\n")
        run.terminate()
        run.wait()
        self.assertEqual(self.images("rm", "app").status, 0)
        self.assertEqual(self.trees(), [])

    def test_what_is_there_already_is_checked_all_the_same(self):
        lower, upper = self.busybox(), Layer().file("etc/mark", random.Random(2).randbytes(5000))
        image = Image([lower, upper], packing="plain")
        self.load("good", image.write_oci_archive(self.work / "good.tar"))
        saved = (self.work / "good.tar").read_bytes()
        at = saved.index(image.tars[1][1000:1100]) + 50
        (self.work / "flipped.tar").write_bytes(saved[:at] + bytes([saved[at] ^ 1]) + saved[at + 1:])
        self.assert_refused(self.images("load", "bad", self.work / "flipped.tar"), 125, "has the digest sha256:")
        false_ids = Image([lower, upper], packing="plain", diff_ids=lambda ids: ["sha256:" + "0" * 64] * 2)
        for name in ("oci", "docker"):
            source = getattr(false_ids, f"write_{name}_archive")(self.work / f"{name}.tar")
            self.assert_refused(self.images("load", "bad", source), 125, "and the configuration says sha256:0000")
        other = Image([lower, Layer().file("etc/mark", b"other")], packing="plain",
                      diff_ids=lambda ids: [digest(tar) for tar in image.tars])
        self.assert_refused(self.images("load", "bad", other.write_docker_archive(self.work / "other.tar")), 125,
                            "a layer unpacks to sha256:")
        self.assertEqual(self.names(), ["good"])
        self.load("again", image.write_docker_archive(self.work / "again.tar"))
        self.assertEqual(self.inspect("again")["layers"], self.inspect("good")["layers"])
        self.assertEqual(len(self.trees()), 1)

    def test_a_load_beside_a_removal_loads_anew(self):
        source = self.saved()
        self.load("app", source)
        with (self.store / "lock").open("rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            load = self.start("image", "load", "twin", source)
            inode = f":{os.fstat(lock.fileno()).st_ino} "
            while not any("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines()):
                time.sleep(0.01)
                self.assertIsNone(load.poll())
            shutil.rmtree(self.trees()[0])
        out, err = load.communicate(timeout=100)
        self.assertEqual((load.returncode, err), (0, b""), out)
        self.assertEqual(self.ok("--image", "twin", "--", "echo", "whole"), "whole\n")

    def test_damage_is_told(self):
        self.load("app", self.saved())
        (self.store / "names/app").write_text("{bad")
        self.assertRegex(self.images("ls").text, r"(?m)^app +damaged: .*/names/app is no record of an image .*; load the image again$")
        self.assertIn("damage", json.loads(self.images("ls", "--json").text)["images"][0])
        os.mkfifo(self.store / "names/pipe")
        self.assertRegex(self.images("ls", patience=20).text, r"(?m)^pipe +damaged: .*/names/pipe is no record of an image")
        (self.store / "names/pipe").unlink()
        for command in (("run", "--image", "app", "--", "true"), ("image", "inspect", "app")):
            self.assert_refused(self.belljar(*command), 125, "/names/app is no record of an image")
        self.load("app", self.work / "image.tar")
        self.assertEqual(self.ok("--image", "app", "--", "echo", "whole"), "whole\n")

    def test_loads_at_once_share(self):
        source = self.saved(Layer().file("opt/big", random.Random(1).randbytes(20 << 20)))
        rootfs = self.work / "rootfs.tar.gz"
        subprocess.run(["tar", "-C", self.work / "tree", "-czf", rootfs, "bin", "etc"], check=True)
        loads = [self.start("image", "load", f"n{i}", source if i % 2 else rootfs) for i in range(6)]
        for load in loads:
            out, err = load.communicate(timeout=100)
            self.assertEqual(load.returncode, 0, (out, err))
        self.assertEqual(self.names(), [f"n{i}" for i in range(6)])
        self.assertEqual(len(self.trees()), 2)
        self.assert_nothing_half()

    def test_killed_at_any_moment_it_stays_usable(self):
        source = self.saved(Layer().file("opt/big", random.Random(1).randbytes(30 << 20)), Cmd=["echo", "whole"])
        start = time.monotonic()
        self.load("app", source)
        whole_s = time.monotonic() - start
        reference = tree_hash(self.trees()[0] / "root", times=False)
        self.images("rm", "app")
        random.seed(5)
        for _ in range(15):
            load = self.start("image", "load", "app", source, start_new_session=True)
            time.sleep(random.uniform(0, whole_s))
            load.send_signal(signal.SIGKILL)
            load.communicate()
            self.assert_no_process_of(load.pid)
            if self.names():
                self.assertEqual(self.ok("--image", "app"), "whole\n")
                self.images("rm", "app")
            else:
                self.assert_refused(self.run_in("--image", "app"), 125, "none is loaded yet")
        self.load("app", source)
        self.assertEqual(tree_hash(self.trees()[0] / "root", times=False), reference)
        self.assertEqual(self.ok("--image", "app"), "whole\n")
        self.assert_nothing_half()
        self.assertEqual(len(self.trees()), 1)

    def assert_no_process_of(self, session: int):
        """Nothing of that session goes on."""
        until = time.monotonic() + 5
        while True:
            left = []
            for stat in Path("/proc").glob("[0-9]*/stat"):
                try:
                    fields = stat.read_text().rsplit(")", 1)[1].split()
                except OSError:
                    continue
                if int(fields[3]) == session and fields[0] != "Z":
                    left.append(stat)
            if not left:
                return
            self.assertLess(time.monotonic(), until, f"a process outlived its load: {left}")
            time.sleep(0.01)

    def test_gc_sweeps_what_a_killed_load_left(self):
        source = self.saved(Layer().file("opt/big", random.Random(1).randbytes(30 << 20)))
        load = self.start("image", "load", "app", source)
        while not (self.store / "building/new/root").exists():
            time.sleep(0.001)
        load.send_signal(signal.SIGKILL)
        load.communicate()
        self.assertIn("removed 1 thing", self.images("gc").text)
        self.assert_nothing_half()

    def test_a_store_that_is_not_ours_is_not_used(self):
        self.store.mkdir(mode=0o777)
        self.store.chmod(0o777)
        self.assert_refused(self.images("load", "x", self.saved()), 125, "can be written by others")
        self.assert_refused(self.run_in("--image", "x", "--", "true"), 125, "can be written by others")

    def test_the_store_is_where_it_is_said(self):
        home = {"HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder / "data")}
        if self.caller_id != 0:
            ended = self.images("load", "x", self.saved(), env={**home, "BELLJAR_IMAGES": ""})
            self.assert_refused(ended, 125, "BELLJAR_IMAGES must be an absolute path")
        self.assert_refused(self.images("ls", env={"BELLJAR_IMAGES": "relative"}), 125, "absolute path")


if __name__ == "__main__":
    main()
