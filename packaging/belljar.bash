# bash completion for belljar: commands and options as its own help names them.
_belljar() {
  local current=${COMP_WORDS[COMP_CWORD]} words
  if ((COMP_CWORD == 1)); then
    words=$("$1" --help 2>/dev/null | sed -n '/^Examples:/q; s/^  \([a-z]\+\) .*/\1/p')
  elif [[ $current == -* ]]; then
    words=$("$1" "${COMP_WORDS[1]}" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u)
  else
    COMPREPLY=()
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _belljar belljar
