import { useState } from 'preact/hooks';
import { exactUsd } from '../../money';
import { plural, showPercent, showShortCount } from '../../numbers';
import { handlingOf, regionOf } from '../../parts/facts';
import { type Column, TablePanel } from '../../parts/table';
import { Search } from '../../parts/toolbar';
import { UpstreamState } from '../../parts/values';
import type { Model, Upstream } from '../../shapes';
import { showMaybeDuration } from '../../times';

/** The largest number of models that the list shows without a search field. */
const FEW = 8;

const price = (of: 'input' | 'output' | 'cacheRead' | 'cacheWrite') => (model: Model) =>
  exactUsd(model.pricePerMillion[of]);

const MODEL_COLUMNS: readonly Column<Model>[] = [
  {
    title: 'Model',
    cell: ({ name, aliases }) => (
      <>
        <span class="mono">{name}</span>
        {aliases.length > 0 && <span class="faint small sub cut">also {aliases.join(', ')}</span>}
      </>
    ),
  },
  { title: 'Input', isNumber: true, cell: price('input') },
  { title: 'Output', isNumber: true, cell: price('output') },
  { title: 'Cache read', isNumber: true, cell: price('cacheRead') },
  { title: 'Cache write', isNumber: true, room: 'from-m', cell: price('cacheWrite') },
  { title: 'Context', isNumber: true, room: 'from-m', cell: ({ context }) => showShortCount(context) },
  { title: 'Max. output', isNumber: true, room: 'from-m', cell: ({ maxOutput }) => showShortCount(maxOutput) },
  {
    title: 'Region',
    room: 'from-l',
    look: 'quiet',
    cell: ({ facts }) => (
      <span title={facts.map((each) => `${each.upstream}: ${regionOf(each)}, ${handlingOf(each)}`).join('\n')}>
        {[...new Set(facts.map(regionOf))].join(' or ')}
      </span>
    ),
  },
  { title: 'Protocols', room: 'from-l', look: 'quiet', cell: ({ protocols }) => protocols.join(', ') },
  {
    title: 'Upstreams',
    room: 'from-m',
    look: 'quiet',
    cell: ({ upstreams }) => (
      <span title={upstreams.join(', ')}>
        {upstreams.length === 1 ? upstreams[0] : plural(upstreams.length, 'upstream')}
      </span>
    ),
  },
];

export function Models({ models }: { readonly models: readonly Model[] | undefined }) {
  const [words, setWords] = useState('');
  const wanted = words.trim().toLowerCase();
  const shown = models?.filter(({ name, aliases }) =>
    [name, ...aliases].some((each) => each.toLowerCase().includes(wanted)),
  );
  const search = (models?.length ?? 0) > FEW && (
    <Search label="Search models" placeholder="Search" value={words} onChange={setWords} />
  );
  return (
    <TablePanel
      title="Models"
      hint="USD per million tokens"
      actions={search}
      caption="Models and their prices per million tokens"
      columns={MODEL_COLUMNS}
      rows={shown}
      keyOf={({ name }) => name}
      none={wanted === '' ? 'The operator has configured no model.' : `No model matches “${words}”.`}
    />
  );
}

const UPSTREAM_COLUMNS: readonly Column<Upstream>[] = [
  { title: 'Upstream', look: 'mono', cell: ({ name }) => name },
  { title: 'State', cell: ({ state }) => <UpstreamState state={state} /> },
  { title: 'Success', isNumber: true, cell: ({ successRate: rate }) => (rate === null ? '–' : showPercent(rate)) },
  { title: 'First token', isNumber: true, cell: ({ firstTokenMs }) => showMaybeDuration(firstTokenMs) },
  { title: 'Tier', room: 'from-m', look: 'quiet', cell: ({ tier }) => tier },
  {
    title: 'Models',
    room: 'from-m',
    look: 'quiet',
    cell: ({ models }) => <span title={models.join(', ')}>{plural(models.length, 'model')}</span>,
  },
];

export function Upstreams({ upstreams }: { readonly upstreams: readonly Upstream[] | undefined }) {
  return (
    <TablePanel
      title="Upstreams"
      caption="Upstreams and their state"
      columns={UPSTREAM_COLUMNS}
      rows={upstreams}
      keyOf={({ name }) => name}
      bones={2}
      none="The operator has configured no upstream."
    />
  );
}
