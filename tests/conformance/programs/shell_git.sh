# git: a repository from its first commit to clones, branches, merges and packs.
set -eu
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_AUTHOR_DATE='2001-01-01T00:00:00Z'
export GIT_COMMITTER_NAME=C GIT_COMMITTER_EMAIL=c@example.org GIT_COMMITTER_DATE='2001-01-01T00:00:00Z'
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_TERMINAL_PROMPT=0
git init -q -b main repository
cd repository
i=0
while [ $i -lt 50 ]; do mkdir -p d$((i % 5)); echo "content $i" > d$((i % 5))/f$i; i=$((i + 1)); done
git add .
git commit -q -m first
git rev-parse HEAD
echo more >> d1/f1
git mv d2/f2 d2/moved
rm d3/f3
git status --short
git commit -q -a -m second
git log --format='%h %s' --stat | head -12
git checkout -q -b other HEAD~1
echo other > new
git add new
git commit -q -m third
git checkout -q main
git merge -q -m merged other
git log --oneline --graph | cat
git tag -a -m tag v1
git gc -q
git fsck --no-progress
cd ..
git clone -q repository copy 2>&1
cd copy
git log -1 --format=%H
git describe
test -z "$(git status --short)" && echo clean
git grep -c content | wc -l
git diff HEAD~1 --shortstat
git stash list | wc -l
git archive HEAD | tar t | wc -l
git cat-file -p HEAD^{tree} | head -3
