import { plural, showPercent } from '../../numbers';
import { type Column, Table } from '../../parts/table';
import { UpstreamState } from '../../parts/upstream-state';
import type { Upstream } from '../../shapes';
import { showDuration } from '../../times';

const COLUMNS: readonly Column<Upstream>[] = [
  { title: 'Upstream', look: 'mono', cell: ({ name }) => name },
  { title: 'State', cell: ({ state }) => <UpstreamState state={state} /> },
  { title: 'Success', isNumber: true, cell: ({ successRate: rate }) => (rate === null ? '–' : showPercent(rate)) },
  { title: 'First token', isNumber: true, cell: ({ firstTokenMs: ms }) => (ms === null ? '–' : showDuration(ms)) },
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
    <section class="panel" aria-labelledby="upstreams-title">
      <header class="panel-head">
        <h2 id="upstreams-title">Upstreams</h2>
      </header>
      <Table
        label="Upstreams"
        caption="Upstreams and their state"
        columns={COLUMNS}
        rows={upstreams}
        keyOf={({ name }) => name}
        bones={2}
        none="The operator has configured no upstream."
      />
    </section>
  );
}
