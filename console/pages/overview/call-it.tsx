import { useState } from 'preact/hooks';
import { Segmented } from '../../parts/segmented';
import { Snippet } from '../../parts/snippet';
import { hrefOf } from '../../router';
import type { Catalog } from '../../shapes';
import { SNIPPETS, snippetOf, type Way } from './snippets';

/** How to make a first call, ready to be pasted. */
export function CallIt({ catalog }: { readonly catalog: Catalog | undefined }) {
  const [way, setWay] = useState<Way>('curl');
  const [chosen, setChosen] = useState<string>();
  const { protocol } = SNIPPETS[way];
  const models = (catalog?.models ?? []).filter(({ protocols }) => protocols.includes(protocol));
  const model = models.find(({ name }) => name === chosen) ?? models[0];
  const text = catalog === undefined ? undefined : snippetOf(way, catalog.publicUrl, model?.name ?? 'a-model');
  return (
    <section class="panel" aria-labelledby="call-title">
      <header class="panel-head">
        <h2 id="call-title">How to call it</h2>
        <Segmented
          label="Called from"
          value={way}
          options={(Object.keys(SNIPPETS) as Way[]).map((value) => ({ value, text: SNIPPETS[value].name }))}
          onChange={setWay}
        />
        <span class="grow" />
        {models.length > 1 && (
          <label class="inline-control">
            <span class="quiet">Model</span>
            <select value={model?.name} onChange={(event) => setChosen(event.currentTarget.value)}>
              {models.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
      </header>
      <Snippet name={SNIPPETS[way].name} text={text} />
      <p class="panel-foot quiet small">
        <code>TOLLGATE_API_KEY</code> holds a key from <a href={hrefOf('/keys')}>API Keys</a>. Messages clients use the
        base address as it is, chat clients with <code>/v1</code>.
      </p>
    </section>
  );
}
