export GIT_AUTHOR_DATE='2001-02-03T04:05:06Z' GIT_COMMITTER_DATE='2001-02-03T04:05:06Z'
cd /tmp; git config --global user.name Name; git config --global user.email n@example.org; git config --global init.defaultBranch main
git init repo; cd repo || exit; for i in 1 2 3; do echo "line $i" >> file; seq $i > seq-$i; git add .; git commit -q -m "commit $i"; done
git log --format='%H %s' --stat; git checkout -q -b side HEAD~1; echo side > side; git add side; git commit -m side; git checkout -q main; git merge -q --no-edit side; git log --graph --oneline
git clone -q . ../copy; git -C ../copy log --format=%T; git clone -q --no-local --depth 1 file:///tmp/repo ../shallow; git -C ../shallow log --oneline
echo more >> file; git diff; git status --short; git stash -q; git stash list; git stash pop; git gc -q; git fsck --full; git count-objects; git grep -n 'line 2'; git blame -s file; git bundle create -q ../b HEAD main; git clone -q ../b ../fromb; ls ../fromb; git checkout nosuch; echo $?
