import type { Word } from './words';

/**
 * Returns the script for bash: `source <(tollgate completion bash)`. Its path consists of the noun and verb so far, without
 * options and arguments. It offers the words after that path, or files if none fits.
 */
export function bashScript(words: ReadonlyMap<string, readonly Word[]>): string {
  const cases = [...words].map(([path, next]) => `    '${path}') words='${next.map(({ word }) => word).join(' ')}' ;;`);
  return `_tollgate() {
  local path='' word words='' at
  for ((at = 1; at < COMP_CWORD; at++)); do
    word="\${COMP_WORDS[at]}"
    [[ $word == -* ]] && continue
    case "\${path:+$path }$word" in
      ${paths(words).join('|')}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _tollgate tollgate
`;
}

function paths(words: ReadonlyMap<string, unknown>): string[] {
  return [...words.keys()].filter((path) => path !== '').map((path) => `'${path}'`);
}
