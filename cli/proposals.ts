import { PUBLIC_LISTS } from '../core/configuration/proposals/list';
import type { Answers } from '../shapes/answers';
import { PROPOSAL, PROPOSAL_ROW } from './columns';
import { type Verb, verb } from './command';
import { type ChangeOptions, changeConfiguration, readFileOrInput, withChangeOptions, withProblems } from './config';
import { UsageError } from './failure';
import { toTime } from './key-fields';
import { type Output, showList } from './output';

type ProposalShape = Answers['GET /admin/v1/catalogue/proposals/{proposalId}'];
type Row = ProposalShape['rows'][number];

const PATH = '/catalogue/proposals';

const pathOf = (id: string) => `${PATH}/${encodeURIComponent(id)}`;

export const fetchCatalogue: Verb = (noun, open) => {
  noun
    .command('fetch <source>')
    .description('compare the prices with a public list, models.dev, litellm or a file of one, and make a proposal')
    .option('--url <url>', 'the address of the list; default: its public one')
    .action(async (source: string, { url }: { readonly url?: string }, command) => {
      const { client, output } = open(command);
      const known: string | undefined = Object.hasOwn(PUBLIC_LISTS, source)
        ? PUBLIC_LISTS[source as keyof typeof PUBLIC_LISTS]
        : undefined;
      if (known === undefined && url !== undefined)
        throw new UsageError('--url is for models.dev and litellm; a file is read here.');
      const body =
        known === undefined
          ? { source: 'file', text: await readFileOrInput(source, output) }
          : { source, url: url ?? known };
      await showProposal(output, await client.ask<ProposalShape>('POST', PATH, body));
    });
};

/** Shows the rows of a proposal, and for people what it says beside them. */
async function showProposal(output: Output, proposal: ProposalShape): Promise<void> {
  if (output.json) return output.write(`${JSON.stringify(proposal, null, 2)}\n`);
  const { id, status, holdsFrom, rows, gone } = proposal;
  if (rows.length > 0) await showList(output, { items: rows }, PROPOSAL_ROW);
  else output.note('No price differs.');
  for (const { upstream, model } of gone) output.note(`${upstream}/${model} is no longer in the list.`);
  output.note(`Proposal ${id} is ${status}${holdsFrom === null ? '' : ` from ${holdsFrom}`}.`);
}

export const showProposals: Verb = (noun, open) => {
  noun
    .command('show <proposal>')
    .description('show a proposal: each price that differs, and why it cannot be accepted')
    .action(async (id: string, _options, command) => {
      const { client, output } = open(command);
      await showProposal(output, await client.ask<ProposalShape>('GET', pathOf(id)));
    });
};

interface ReviewOptions {
  readonly accept?: readonly string[];
  readonly refuse?: readonly string[];
}

export const reviewRows: Verb = (noun, open) => {
  noun
    .command('review <proposal>')
    .description('accept and refuse rows of a proposal; without options it asks row by row')
    .option('--accept <rows...>', 'the ids of rows to accept')
    .option('--refuse <rows...>', 'the ids of rows to refuse')
    .action(async (id: string, { accept, refuse }: ReviewOptions, command) => {
      const { client, output } = open(command);
      const given = accept !== undefined || refuse !== undefined;
      const review = given
        ? { accept, refuse }
        : await askAbout(output, await client.ask<ProposalShape>('GET', pathOf(id)));
      await showProposal(output, await client.ask<ProposalShape>('PATCH', pathOf(id), review));
    });
};

/** Asks about each row that waits for a decision. Any answer but yes and no leaves the row as it is. */
async function askAbout({ ask, note }: Output, { rows }: ProposalShape): Promise<Required<ReviewOptions>> {
  if (ask === undefined)
    throw new UsageError('this is not a terminal, so no question is possible: add --accept or --refuse with row ids.');
  const accept: string[] = [];
  const refuse: string[] = [];
  for (const row of rows) {
    if (row.state === 'stopped') note(`${rowText(row)}: stopped (${row.guard})`);
    if (row.state !== 'proposed') continue;
    const answer = (await ask(`${rowText(row)}: accept? [y/n] `)).trim();
    if (/^y(es)?$/i.test(answer)) accept.push(row.id);
    else if (/^no?$/i.test(answer)) refuse.push(row.id);
  }
  return { accept, refuse };
}

function rowText({ id, upstream, model, meter, old, new: next }: Row): string {
  return `${id}  ${upstream}/${model} ${meter}  ${old} -> ${next ?? 'none'}`;
}

export const applyProposal: Verb = (noun, open) => {
  withChangeOptions(noun.command('apply <proposal>'))
    .description('apply the accepted rows to every node, at once or at a time')
    .option('--from <time>', 'when the prices begin to hold, such as 2026-12-01T00:00Z; default: now')
    .action(async (id: string, { from, ...options }: ChangeOptions & { readonly from?: string }, command) => {
      const session = open(command);
      const body = from === undefined ? {} : { from: withSeconds(toTime(from) ?? from) };
      await withProblems(session.output, () => changeConfiguration(session, `${pathOf(id)}/apply`, body, options));
    });
};

/** Adds the seconds that the gateway expects to a time without them. */
function withSeconds(time: string): string {
  return time.replace(/^(\d{4}-\d\d-\d\dT\d\d:\d\d)(?=Z|[+-])/, '$1:00');
}

export const PROPOSAL_VERBS: readonly Verb[] = [
  fetchCatalogue,
  verb('GET /admin/v1/catalogue/proposals', 'list', 'list proposals, newest first', PROPOSAL, { pages: true }),
  showProposals,
  reviewRows,
  applyProposal,
];
