"""PRV-06: odd user names and ids in an image."""

import os
import subprocess
import time

from harness import callers, main
from loading import ImageTest, Layer, busybox_layer

ODD = ("4294967296", "-1", "65536", "+0", "0x0", "1000:docker", "nobody-here", ":", "1000:", " root", "root\n", "a" * 10_000)
PASSWD = b"root:x:0:0::/:/bin/sh\nfar:x:4294967295:0::/:/bin/sh\nsigned:x:-1:-1::/:/bin/sh\n"


class Prv06(ImageTest):
    def setUp(self) -> None:
        super().setUp()
        self.base = busybox_layer(self.work / "tree")

    def image(self, user: str):
        return self.save(self.base, Layer().file("etc/passwd", PASSWD), config={"User": user})

    def test_what_names_nobody_is_refused(self) -> None:
        for caller in callers():
            for user in (*ODD, "far", "signed"):
                with self.subTest(caller=caller, user=user[:20]):
                    self.assert_refused(self.load(caller, self.image(user)), caller, "user")

    def test_root_of_the_image_is_nobody_outside(self) -> None:
        # The control: as the host sees it, root is 0.
        self.assertEqual(os.stat("/proc/1").st_uid, 0)
        for caller in callers():
            for user in ("", "root", "0", "0:0"):
                with self.subTest(caller=caller, user=user):
                    self.assertEqual(self.load(caller, self.image(user)).returncode, 0)
                    argv = [caller.belljar, "run", "--image", "x", "--", "sh", "-c", "id -u; exec sleep 98.7"]
                    process = caller.popen(argv, env=self.environment(caller), stdout=subprocess.PIPE)
                    try:
                        self.assertEqual(process.stdout.readline(), b"0\n")
                        time.sleep(0.2)
                        found = subprocess.run(["pgrep", "-f", "^sleep 98.7$"], capture_output=True, text=True).stdout.split()
                        self.assertEqual(len(found), 1)
                        self.assertNotEqual(os.stat(f"/proc/{found[0]}").st_uid, 0)
                    finally:
                        process.terminate()
                        process.wait()
                        process.stdout.close()


if __name__ == "__main__":
    main()
