"""The base of cases on hosts of --allow: each class of them in a little internet of its own."""

import unittest

from harness import EscapeTest
from internet import PUBLIC, Server, enter


class AllowedTest(EscapeTest):
    names = {"allowed.example": [PUBLIC]}  # what the DNS server knows

    @classmethod
    def setUpClass(cls) -> None:
        cls.dns = enter()
        if cls.dns is None:
            raise unittest.SkipTest("only root can make a network")
        cls.dns.names = dict(cls.names)
        cls.serve()

    @classmethod
    def serve(cls) -> None:
        """Starts the servers of the case."""
        cls.server = Server(80)
