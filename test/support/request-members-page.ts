import { PROTOCOL_NAMES, PROTOCOLS } from '../../core/catalog/protocols';
import type { Dialect, EventPaths } from '../../core/dialects/dialect';
import { DIALECTS, type DialectRow, dialectRows } from '../../core/dialects/dialects';
import { tableOf } from './markdown-table';

const CLASSES = [
  ['class', 'means', 'the [hold](money.md#the-hold)'],
  ['`free`', 'the member has no influence on the cost', 'nothing'],
  ['`bounded`', 'the vendor reads what is in the body', 'the bound of the input'],
  [
    '`outside`',
    'the vendor reads something that is not in the body, or that it unpacks',
    "the model's context window, or what the operator declares in `bounds`",
  ],
  [
    '`priced`',
    'the vendor charges more than tokens at the plain price',
    'its price; without one nothing, unless the operator refuses it ([without a price](money.md#without-a-price))',
  ],
  ['`refused`', 'the vendor would bill it after the call has ended', 'the call is 400 NOT_SUPPORTED'],
] as const;

const HEAD = `# Request members

\`npm run members\` writes this page from the tables in [\`core/dialects\`](../core/dialects/dialects.ts). The gateway itself uses the same tables, and
\`tollgate dialects show messages\`, \`chat\`, \`responses\` or \`embeddings\` prints them.

${tableOf(CLASSES)}
\`null\` is free for every member. A word in the column \`sharedObjects\` names objects that the vendor keeps for the platform's account. A request that names one is
refused unless the setting \`sharedObjects\` of \`model-request\` has that word. Objects that answers make
are open to the account that got them ([things that the vendor keeps](money.md#things-that-the-vendor-keeps)). \`*\` stands for a version. A word in
the column \`pieces\` is the meter that gives it a price ([tools that run at the vendor](money.md#tools-that-run-at-the-vendor)).
`;

/** Returns the text of docs/request-members.md. */
export function requestMembersPage(): string {
  const tables = PROTOCOL_NAMES.map((protocol) => {
    const dialect = DIALECTS[protocol];
    return `\n## ${PROTOCOLS[protocol].title}\n\n${table(dialectRows(dialect))}${keptTable(dialect)}`;
  });
  return HEAD + tables.join('');
}

function table(rows: readonly DialectRow[]): string {
  const cells = rows.map((row) => [
    row.place,
    `\`${row.name}\``,
    row.class,
    row.why,
    row.freeValues === null ? '' : `\`${row.freeValues}\``,
    row.names === null ? '' : `\`${row.names}\``,
    row.meter === null ? '' : `\`${row.meter}\``,
  ]);
  return tableOf([['place', 'name', 'class', 'why', 'free values', '`sharedObjects`', '`pieces`'], ...cells]);
}

/** Returns a table of the kinds of objects that answers create, and where answers name them. */
function keptTable({ kept }: Dialect): string {
  const rows = Object.entries(kept).flatMap(([kind, { days, answer, events, items }]) => [
    [`\`${kind}\``, `${days} days`, `\`${answer.join('.')}\``, inEvents(events)],
    ...(items === undefined
      ? []
      : [[`\`${items.kind}\``, 'as long', `\`${items.answer.join('.')}[].id\``, inEvents(items.events, '.id')]]),
  ]);
  if (rows.length === 0) return '';
  return `\n${tableOf([['answers make', 'kept by the vendor for', 'its id in an answer', 'in a stream'], ...rows])}`;
}

function inEvents(events: EventPaths, after = ''): string {
  return Object.entries(events)
    .map(([event, path]) => `\`${path.join('.')}${after}\` of \`${event}\``)
    .join(', ');
}
