import json,re,asyncio,email,http.client,unittest,decimal,sqlite3
print(json.dumps({"a": [1, None, "ž"]}), re.findall(r"\d+", "a1b22"), decimal.Decimal(2).sqrt(), email.message_from_string("A: b\n\nc").items())
class Test(unittest.TestCase):
    def test_it(self): self.assertEqual(1 + 1, 2)
print(unittest.TextTestRunner(stream=open("/dev/null", "w")).run(unittest.defaultTestLoader.loadTestsFromTestCase(Test)).testsRun, sqlite3.sqlite_version, http.client.OK)
