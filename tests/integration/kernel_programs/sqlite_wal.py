import multiprocessing, os, sqlite3
def write(n):
    base = sqlite3.connect("/tmp/x.db", timeout=20)
    for i in range(20):
        with base: base.execute("insert into t values (?, ?)", (n, i))
if __name__ == "__main__":
    base = sqlite3.connect("/tmp/x.db"); print(base.execute("pragma journal_mode=wal").fetchone()); base.execute("create table t (a int, b int)"); base.commit()
    with multiprocessing.get_context("fork").Pool(3) as pool: pool.map(write, range(3))
    print(base.execute("select a, count(*), sum(b) from t group by a").fetchall(), sorted(os.listdir("/tmp")), base.execute("pragma integrity_check").fetchone())
    other = sqlite3.connect("/tmp/x.db", timeout=0.05, isolation_level=None); other.execute("begin immediate")
    try: base.execute("pragma busy_timeout = 50"); base.execute("insert into t values (9, 9)")
    except sqlite3.OperationalError as e: print(e)
    other.execute("rollback"); print(base.execute("pragma wal_checkpoint(truncate)").fetchone(), os.path.getsize("/tmp/x.db-wal")); base.close(); other.close(); print(sorted(os.listdir("/tmp")))
