# bash completion for belljar: commands, the words after them, and options, as its own help names them.
_belljar() {
  local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words
  if ((COMP_CWORD == 1)) || [[ $COMP_CWORD == 2 && $command == help ]]; then
    words=$("$1" --help 2>/dev/null | sed -n '/^Examples:/q; s/^  \([a-z]\+\) .*/\1/p')
  elif [[ $current == -* ]]; then
    [[ $command == policy && ${COMP_WORDS[2]} == show ]] && command=run
    # Those of the usage and of the list below, not those that the text tells of.
    words=$("$1" "$command" --help 2>/dev/null | sed -n '1,/^$/p; s/^  \(--[^ ]*\).*/\1/p' | grep -oE -- '--[a-z][a-z-]*' | sort -u)
  elif ((COMP_CWORD == 2)); then
    words=$("$1" "$command" --help 2>/dev/null | sed -n "s/^\(usage:\|      \) belljar $command \([a-z]\+\).*/\2/p")
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _belljar belljar
