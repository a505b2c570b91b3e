import type { Command } from 'commander';

/** A possible next word of a command line, with its summary. */
export interface Word {
  readonly word: string;
  readonly summary: string;
}

/** Returns the words that may follow each path: `''` is the program itself, `accounts` a noun, and `accounts create` a noun with a verb. */
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
