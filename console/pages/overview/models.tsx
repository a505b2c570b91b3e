import { useState } from 'preact/hooks';
import { exactUsd } from '../../money';
import { plural, showShortCount } from '../../numbers';
import { Icon } from '../../parts/icon';
import { type Column, Table } from '../../parts/table';
import type { Model } from '../../shapes';

/** The most models that are listed without a search field. */
const FEW = 8;

const price = (of: 'input' | 'output' | 'cacheRead' | 'cacheWrite') => (model: Model) =>
  exactUsd(model.pricePerMillion[of]);

const COLUMNS: readonly Column<Model>[] = [
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
  return (
    <section class="panel" aria-labelledby="models-title">
      <header class="panel-head">
        <h2 id="models-title">
          Models <span class="faint">USD per million tokens</span>
        </h2>
        <span class="grow" />
        {(models?.length ?? 0) > FEW && (
          <label class="search">
            <Icon name="search" />
            <input
              type="search"
              aria-label="Search models"
              placeholder="Search"
              value={words}
              onInput={(event) => setWords(event.currentTarget.value)}
            />
          </label>
        )}
      </header>
      <Table
        label="Models and prices"
        caption="Models and their prices per million tokens"
        columns={COLUMNS}
        rows={shown}
        keyOf={({ name }) => name}
        none={wanted === '' ? 'The operator has configured no model.' : `No model matches “${words}”.`}
      />
    </section>
  );
}
