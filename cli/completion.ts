import { Argument, type Command } from 'commander';
import type { Verb } from './command';

/**
 * Returns the script for bash: `source <(tollgate completion bash)`. It looks up the nouns and verbs typed so far, without options and
 * arguments. It offers the words that may follow them, or files if none fits.
 */
function bashScript(words: ReadonlyMap<string, readonly Word[]>): string {
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

const SCRIPTS = { bash: bashScript, zsh: zshScript } as const;

/** Registers the command `completion` last, because it completes only commands that exist by then. */
const showCompletion: Verb = (root, open) => {
  root
    .command('completion')
    .addArgument(new Argument('<shell>', 'which shell').choices(Object.keys(SCRIPTS)))
    .description('print the completion script for a shell: source <(tollgate completion bash)')
    .action(async (shell: keyof typeof SCRIPTS, _options, command: Command) => {
      await open(command).output.write(SCRIPTS[shell](completionWords(root)));
    });
};

export default showCompletion;

/** A possible next word of a command line, with its summary. */
interface Word {
  readonly word: string;
  readonly summary: string;
}

/**
 * Returns the words that may follow each command path. The path is `''` for the program itself, `accounts` for a noun, and `accounts
 * create` for a noun with a verb.
 */
function completionWords(root: Command): ReadonlyMap<string, readonly Word[]> {
  const everywhere = [...root.options.map(optionWord), { word: '--help', summary: 'show the available commands' }];
  const words = new Map<string, readonly Word[]>();
  const visit = (command: Command, path: string): void => {
    const own = command === root ? [] : command.options.map(optionWord);
    const verbs = command.commands.map((each) => ({ word: each.name(), summary: each.description() }));
    const choices = command.registeredArguments.flatMap(({ argChoices = [], description }) =>
      argChoices.map((word) => ({ word, summary: description })),
    );
    words.set(path, [...verbs, ...choices, ...own, ...everywhere]);
    for (const each of command.commands) visit(each, `${path} ${each.name()}`.trim());
  };
  visit(root, '');
  return words;
}

function optionWord({
  long,
  flags,
  description,
}: {
  long?: string | undefined;
  flags: string;
  description: string;
}): Word {
  return { word: long ?? flags, summary: description };
}

/** Returns the script for zsh: `tollgate completion zsh > _tollgate` in a folder of fpath, or `source <(tollgate completion zsh)` after compinit. */
function zshScript(words: ReadonlyMap<string, readonly Word[]>): string {
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

/** Returns a word with its summary for zsh. Escapes colons, because a colon ends the word, and replaces quotes, because a quote ends the text. */
function described({ word, summary }: Word): string {
  return `'${word}:${summary.replaceAll("'", '’').replaceAll(':', '\\:')}'`;
}
