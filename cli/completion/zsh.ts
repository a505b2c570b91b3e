import type { Word } from './words';

/** Returns the script for zsh: `tollgate completion zsh > _tollgate` in a folder of fpath, or `source <(tollgate completion zsh)` after compinit. */
export function zshScript(words: ReadonlyMap<string, readonly Word[]>): string {
  const known = [...words.keys()].filter((path) => path !== '').map((path) => `'${path}'`);
  const cases = [...words].map(([path, next]) => `    ('${path}') offered=(${next.map(described).join(' ')}) ;;`);
  return `#compdef tollgate
_tollgate() {
  local path_so_far='' word at
  local -a offered
  for ((at = 2; at < CURRENT; at++)); do
    word="\${words[at]}"
    [[ $word == -* ]] && continue
    case "\${path_so_far:+$path_so_far }$word" in
      (${known.join('|')}) path_so_far="\${path_so_far:+$path_so_far }$word" ;;
    esac
  done
  case "$path_so_far" in
${cases.join('\n')}
  esac
  _describe 'tollgate' offered || _files
}
if [[ "\${funcstack[1]}" == _tollgate ]]; then _tollgate "$@"; else compdef _tollgate tollgate; fi
`;
}

/** Returns a word with its summary. It escapes colons, which would end the word, and replaces quotes, which would end the text. */
function described({ word, summary }: Word): string {
  return `'${word}:${summary.replaceAll("'", '’').replaceAll(':', '\\:')}'`;
}
