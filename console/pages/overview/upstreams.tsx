import { plural, showPercent } from '../../numbers';
import { Badge, type Tone } from '../../parts/badge';
import { type Column, Table } from '../../parts/table';
import type { Upstream } from '../../shapes';
import { showDuration } from '../../times';

const STATES: Readonly<Record<Upstream['state'], { readonly tone: Tone; readonly text: string }>> = {
  available: { tone: 'good', text: 'Available' },
  resting: { tone: 'warn', text: 'Asked for time' },
  probing: { tone: 'warn', text: 'Being probed' },
  ejected: { tone: 'bad', text: 'Left out after failures' },
  'taken-out': { tone: 'bad', text: 'Taken out by the operator' },
  disabled: { tone: 'plain', text: 'Disabled' },
};

const COLUMNS: readonly Column<Upstream>[] = [
  { title: 'Upstream', look: 'mono', cell: ({ name }) => name },
  { title: 'State', cell: ({ state }) => <Badge tone={STATES[state].tone}>{STATES[state].text}</Badge> },
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
        caption="Upstreams and how they are"
        columns={COLUMNS}
        rows={upstreams}
        keyOf={({ name }) => name}
        bones={2}
        none="The operator has configured no upstream."
      />
    </section>
  );
}
