import type { Command, Option } from 'commander';
import type { Answers } from '../shapes/answers';
import { type Client, connect, type Environment, withQuery } from './client';
import { type Columns, type Output, showList, showOne } from './output';

/** What a command may use: client, output and environment. The client is created on first use. */
export interface Session {
  readonly client: Client;
  readonly output: Output;
  readonly environment: Environment;
}

/** Adds one verb, such as `create`, to the command of its noun, such as `accounts`. */
export type Verb = (noun: Command, open: (command: Command) => Session) => void;

export function sessions(environment: Environment, output: Omit<Output, 'json'>): (command: Command) => Session {
  return (command) => ({
    client: connect(environment),
    environment,
    output: { ...output, json: command.optsWithGlobals()['json'] === true },
  });
}

function addListOptions(command: Command, pages: Pages): void {
  command.option('--limit <count>', 'how many to list, up to 1000 (default 100)');
  if (pages === 'after') command.option('--after <sequence>', 'only events after this number');
  else command.option('--cursor <cursor>', 'continue after the end of the previous list');
}

/** Prints a note that the list has more pages, for people. Programs read `nextCursor` instead. */
function noteMore(output: Output, { nextCursor }: { readonly nextCursor: string | null }, pages?: Pages): void {
  const option = pages === 'after' ? '--after' : '--cursor';
  if (!output.json && nextCursor !== null) output.note(`More entries: ${option} ${nextCursor}`);
}

/** How a list continues: after the cursor of its last page, or after the number of the last event. */
type Pages = true | 'after';

/** A route of the admin API, by its method and path. */
export type AdminRoute = keyof Answers & `${string} /admin/v1/${string}`;

/** What a table shows: an item of a list, or the answer itself. */
export type Shown<R extends AdminRoute> = Answers[R] extends { items: (infer Item)[] } ? Item : Answers[R];

type Options = Readonly<Record<string, unknown>>;

interface More<R extends AdminRoute> {
  readonly options?: readonly Option[];
  /** How the list is paginated, if it is. The verb then has the options --limit, and --cursor or --after. */
  readonly pages?: Pages;
  /** Returns the query of a GET request from the options. Default: the options themselves. */
  readonly query?: (options: Options) => Options;
  /** Returns the body of a POST, PUT or PATCH request from the options and from the arguments that are not in the path. Default: empty. */
  readonly body?: (options: Options, ...words: string[]) => object;
  /** The members of the answer that the table shows. Default: all. */
  readonly members?: readonly (keyof Answers[R])[];
  /** Runs after the table is shown. @throws Failure if the answer reports a failure */
  readonly after?: (answer: Answers[R], output: Output) => void;
}

/** Returns a verb that makes one request and shows one table. The first arguments in `usage` replace the `{name}` placeholders of the route's path. */
export function verb<R extends AdminRoute>(
  route: R,
  usage: string,
  summary: string,
  columns: Columns<Shown<R>>,
  { options = [], pages, query, body, members, after }: More<R> = {},
): Verb {
  const [method = '', path = ''] = route.replace('/admin/v1', '').split(' ');
  return (noun, open) => {
    const command = noun.command(usage).description(summary);
    if (pages !== undefined) addListOptions(command, pages);
    for (const option of options) command.addOption(option);
    command.action(async (...given: unknown[]) => {
      const self = given.pop() as Command;
      const { client, output } = open(self);
      const chosen = given.pop() as Options;
      const words = given as string[];
      const filled = path.replace(/\{\w+\}/g, () => encodeURIComponent(words.shift() ?? ''));
      const answer = await client.ask<Answers[R]>(
        method,
        method === 'GET' ? withQuery(filled, (query?.(chosen) ?? chosen) as Readonly<Record<string, string>>) : filled,
        ['POST', 'PUT', 'PATCH'].includes(method) ? (body?.(chosen, ...words) ?? {}) : undefined,
      );
      await show(output, members === undefined ? answer : pick(answer, members), columns, pages);
      after?.(answer, output);
    });
  };
}

async function show<T>(output: Output, answer: object, columns: Columns<T>, pages?: Pages): Promise<void> {
  if (!('items' in answer)) return showOne(output, answer as T, columns);
  await showList(output, answer as { items: readonly T[] }, columns);
  if ('nextCursor' in answer) noteMore(output, answer as { nextCursor: string | null }, pages);
}

function pick<T extends object>(item: T, members: readonly (keyof T)[]): object {
  return Object.fromEntries(members.map((name) => [name, item[name]]));
}
