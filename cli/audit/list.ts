import { isDeepStrictEqual } from 'node:util';
import type { Answers } from '../../shapes/answers';
import { withQuery } from '../client';
import type { Verb } from '../command';
import { type ListOptions, noteMore, withListOptions } from '../list-options';
import { type Columns, showList } from '../output';
import type { ListShape } from '../shapes';
import { toTime } from '../time';

type AuditShape = Answers['GET /admin/v1/audit']['items'][number];

const COLUMNS: Columns<AuditShape> = {
  time: (row) => row.createdAt,
  who: (row) => row.actor,
  action: (row) => row.action,
  subject: (row) => row.subject,
  before: ({ before, after }) => differing(before, after),
  after: ({ before, after }) => differing(after, before),
};

/** Returns the members of one side that differ from the other, as JSON. `--json` shows both sides in full. */
function differing(side: AuditShape['before'], other: AuditShape['after']): string | null {
  if (side === null) return null;
  const isOther = ([name, value]: [string, unknown]) => !isDeepStrictEqual(value, other?.[name] ?? null);
  return JSON.stringify(Object.fromEntries(Object.entries(side).filter(isOther)));
}

interface Options extends ListOptions {
  readonly subject?: string;
  readonly actor?: string;
  readonly action?: string;
  readonly from?: string;
  readonly to?: string;
}

const listAudit: Verb = (noun, open) => {
  withListOptions(noun.command('list'))
    .description('list changes of operators and users, newest first')
    .option('--subject <subject>', 'only changes of this subject, such as key:<id> or account:<id>')
    .option('--actor <actor>', 'only changes by this actor, such as admin or user:<id>')
    .option('--action <action>', 'only this action, such as key.revoke')
    .option('--from <time>', 'only from this time on, such as 2026-11-20 (UTC) or 2026-11-20T08:00:00+01:00')
    .option('--to <time>', 'only before this time')
    .action(async ({ from, to, ...filters }: Options, command) => {
      const { client, output } = open(command);
      const { limit, cursor, subject, actor, action } = filters;
      const query = { subject, actor, action, from: toTime(from), to: toTime(to), limit, cursor };
      const answer = await client.ask<ListShape<AuditShape>>('GET', withQuery('/audit', query));
      await showList(output, answer, COLUMNS);
      noteMore(output, answer);
    });
};

export default listAudit;
