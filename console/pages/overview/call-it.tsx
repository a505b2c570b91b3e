import { useState } from 'preact/hooks';
import { Segmented } from '../../parts/segmented';
import { Snippet } from '../../parts/snippet';
import { hrefOf } from '../../router';
import type { Catalog } from '../../shapes';
import { type Call, GROUPS } from './snippets';

/** Stands in a snippet while no model of the account speaks its protocols. */
const EXAMPLE_MODEL: Call['model'] = { name: 'a-model', protocols: [], context: 200_000, maxOutput: 32_000 };

/** How to make a first call and to point an agent at the gateway, ready to be pasted. */
export function CallIt({ catalog }: { readonly catalog: Catalog | undefined }) {
  const [groupName, setGroupName] = useState(GROUPS[0].name);
  const [snippetName, setSnippetName] = useState<string>();
  const [chosen, setChosen] = useState<string>();
  const group = GROUPS.find(({ name }) => name === groupName) ?? GROUPS[0];
  const { name, protocols, note, write } =
    group.snippets.find((each) => each.name === snippetName) ?? group.snippets[0];
  const models = (catalog?.models ?? []).filter((model) => protocols.some((each) => model.protocols.includes(each)));
  const model = models.find((each) => each.name === chosen) ?? models[0];
  const text = catalog === undefined ? undefined : write({ url: catalog.publicUrl, model: model ?? EXAMPLE_MODEL });
  return (
    <section class="panel" aria-labelledby="call-title">
      <header class="panel-head">
        <h2 id="call-title">How to call it</h2>
        <Segmented label="Protocol or agents" value={group.name} options={named(GROUPS)} onChange={setGroupName} />
        <Segmented label="Called from" value={name} options={named(group.snippets)} onChange={setSnippetName} />
        <span class="grow" />
        {models.length > 1 && (
          <label class="inline-control">
            <span class="quiet">Model</span>
            <select value={model?.name} onChange={(event) => setChosen(event.currentTarget.value)}>
              {models.map((each) => (
                <option key={each.name}>{each.name}</option>
              ))}
            </select>
          </label>
        )}
      </header>
      <Snippet name={`${name}, ${group.name}`} text={text} />
      <p class="panel-foot quiet small">
        {note !== undefined && `${note} `}
        {catalog !== undefined &&
          model === undefined &&
          `No model that you may call speaks ${protocols.join(' or ')}. `}
        <code>TOLLGATE_API_KEY</code> is an exported variable with a key from <a href={hrefOf('/keys')}>API Keys</a>.
        Anthropic's SDKs and Claude Code take the base address as it is, all others with <code>/v1</code>.
      </p>
    </section>
  );
}

function named(things: readonly { readonly name: string }[]) {
  return things.map(({ name }) => ({ value: name, text: name }));
}
