import type { Command } from 'commander';

/** What may come next on a command line, and what it is for. */
export interface Word {
  readonly word: string;
  readonly summary: string;
}

/** The words after each path of the command line: `''` for the program, `accounts` and `accounts create` for what follows. */
export function completionWords(root: Command): ReadonlyMap<string, readonly Word[]> {
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
