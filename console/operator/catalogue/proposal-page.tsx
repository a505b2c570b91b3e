import { useState } from 'preact/hooks';
import { ask, type Failure } from '../../api';
import { changeInPercent, exactUsd } from '../../money';
import { plural } from '../../numbers';
import { announce } from '../../parts/announce';
import { Button } from '../../parts/button';
import { decide } from '../../parts/dialog';
import { Page } from '../../parts/page';
import { Bone, Failed } from '../../parts/states';
import { actionsColumn, type Column, TablePanel } from '../../parts/table';
import { Badge, Copied, Named, NONE, type Tone } from '../../parts/values';
import { toFailure, useResource } from '../../resource';
import { fromLocalInput, showWhole } from '../../times';
import { mayChange } from '../session';
import type { ConfigChange, ShownProposal, ShownProposalRow } from '../shapes';
import { PROPOSALS, ProposalStatus, rowsIn } from './proposal';

const EVERY_MS = 5_000;

/** The page of one proposal: each price that differs, to accept or refuse. */
export function ProposalPage({ id }: { readonly id: string }) {
  const proposal = useResource<ShownProposal>(`${PROPOSALS}/${encodeURIComponent(id)}`, { everyMs: EVERY_MS });
  const { data, failure } = proposal;
  const [refusal, setRefusal] = useState<Failure>();
  const review: Review = async (body) => {
    try {
      await ask(`${PROPOSALS}/${encodeURIComponent(id)}`, { method: 'PATCH', body });
      setRefusal(undefined);
      announce(body.accept === undefined ? 'Refused.' : 'Accepted.');
    } catch (error) {
      setRefusal(toFailure(error));
    }
  };
  return (
    <Page
      title={data?.format ?? (failure === undefined ? <Bone width="10ch" /> : 'Proposal')}
      beside={data && <ProposalStatus {...data} />}
      back={{ path: '/catalogue', name: 'Catalogue' }}
      actions={
        data !== undefined && data.status === 'open' && mayChange() && <Actions proposal={data} review={review} />
      }
      tools={
        <p class="sub-head quiet small">
          <Copied text={id} label="Copy the id of the proposal" /> {data !== undefined && whenText(data)}
        </p>
      }
      from={proposal}
    >
      {refusal !== undefined && <Failed failure={refusal} />}
      <Gone proposal={data} />
      <TablePanel
        title="Differences"
        hint="USD per million tokens"
        caption="Prices that differ between the configuration and the list"
        columns={data !== undefined && mayChange() ? [...COLUMNS, actionsOf(data, review)] : COLUMNS}
        rows={data?.rows}
        keyOf={(row) => row.id}
        none="No price differs."
      />
    </Page>
  );
}

function whenText({ createdAt, holdsFrom, number }: ShownProposal): string {
  const read = `Read ${showWhole(createdAt)}.`;
  if (holdsFrom === null) return read;
  return `${read} ${number === null ? 'The accepted prices hold from' : `Applied as revision ${number} at`} ${showWhole(holdsFrom)}.`;
}

type Review = (body: { readonly accept?: readonly string[]; readonly refuse?: readonly string[] }) => Promise<void>;

function Actions({ proposal, review }: { readonly proposal: ShownProposal; readonly review: Review }) {
  const open = proposal.rows.filter(({ state }) => state === 'proposed').map((row) => row.id);
  return (
    <>
      {open.length > 0 && <Button onClick={() => review({ accept: open })}>Accept all</Button>}
      <Button look="primary" isDisabled={rowsIn(proposal, 'accepted') === 0} onClick={() => apply(proposal)}>
        Apply
      </Button>
    </>
  );
}

function apply(proposal: ShownProposal): void {
  const { id } = proposal;
  decide({
    title: `Apply ${plural(rowsIn(proposal, 'accepted'), 'price')}?`,
    verb: 'Apply',
    text: (
      <p>
        Every node charges by the new prices from then on. A price that changes until then is left out. Calls that have
        begun keep their prices.
      </p>
    ),
    fields: [
      { name: 'from', label: 'Hold from', kind: 'expiry', hint: 'In your time zone. Leave it empty to apply now.' },
      { name: 'note', label: 'Note', hint: 'The history shows it.' },
    ],
    act: ({ from = '', ...body }) =>
      ask<ConfigChange>(`${PROPOSALS}/${id}/apply`, {
        method: 'POST',
        body: { ...body, ...(from !== '' && { from: fromLocalInput(from) }) },
      }),
    done: 'The accepted prices are applied, or wait for their time.',
  });
}

function Gone({ proposal }: { readonly proposal: ShownProposal | undefined }) {
  const gone = proposal?.gone ?? [];
  if (gone.length === 0) return null;
  const names = gone.map(({ upstream, model }) => `${upstream}/${model}`).join(', ');
  return (
    <p class="note warn">
      The list no longer has {plural(gone.length, 'model')} whose price came from it: <span class="mono">{names}</span>
    </p>
  );
}

const TONES: Readonly<Record<ShownProposalRow['state'], Tone>> = {
  proposed: 'accent',
  stopped: 'bad',
  accepted: 'good',
  refused: 'plain',
};

/** Why a row is stopped, as in core/configuration/proposals/rows.ts. */
const GUARDS: Readonly<Record<NonNullable<ShownProposalRow['guard']>, string>> = {
  vendor: "the vendor's own page counts",
  hand: 'written by hand',
  number: 'no valid price',
  unpriced: 'the list has no price',
  vanished: 'the list does not name it',
  zero: 'would be free',
  factor: 'beyond a factor of two',
  changed: 'the price has changed since',
};

const COLUMNS: readonly Column<ShownProposalRow>[] = [
  { title: 'Model', cell: ({ model, upstream }) => <Named name={<span class="mono">{model}</span>} sub={upstream} /> },
  { title: 'Meter', cell: ({ meter }) => meter },
  { title: 'Now', isNumber: true, look: 'price-old', cell: ({ old }) => <del>{exactUsd(old)}</del> },
  {
    title: 'In the list',
    isNumber: true,
    look: 'price-new',
    cell: ({ new: next }) => (next === null ? NONE : <ins>{exactUsd(next)}</ins>),
  },
  { title: 'Change', isNumber: true, room: 'from-m', cell: changeOf },
  {
    title: 'State',
    cell: ({ state, guard }) => (
      <>
        <Badge tone={TONES[state]}>{state}</Badge>
        {guard !== null && <span class="quiet small guard">{GUARDS[guard]}</span>}
      </>
    ),
  },
];

function changeOf({ old, new: next }: ShownProposalRow) {
  const percent = next === null ? undefined : changeInPercent(next, old);
  return percent === undefined ? NONE : `${percent > 0 ? '+' : ''}${percent} %`;
}

/** The buttons of a row. While the proposal waits for its time, accepted rows can still be refused. */
function actionsOf({ status, number }: ShownProposal, review: Review): Column<ShownProposalRow> {
  return actionsColumn(({ id: row, state, model, meter }) => (
    <>
      {status === 'open' && (state === 'proposed' || state === 'refused') && (
        <Button look="slight" of={`${meter} of ${model}`} onClick={() => review({ accept: [row] })}>
          Accept
        </Button>
      )}
      {number === null && (state === 'accepted' || (state === 'proposed' && status === 'open')) && (
        <Button look="slight" of={`${meter} of ${model}`} onClick={() => review({ refuse: [row] })}>
          Refuse
        </Button>
      )}
    </>
  ));
}
