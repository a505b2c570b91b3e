import { useState } from 'preact/hooks';
import { Segmented } from '../../parts/segmented';
import { Snippet } from '../../parts/snippet';
import { hrefOf } from '../../router';
import type { Catalog } from '../../shapes';
import { type Call, GROUPS } from './snippets';

/** The model in a snippet while the account has no model with its protocols. */
const EXAMPLE_MODEL: Call['model'] = { name: 'a-model', protocols: [], context: 200_000, maxOutput: 32_000 };

/** Snippets to paste: a first call, and the settings of agents. */
export function CallIt({ catalog }: { readonly catalog: Catalog | undefined }) {
  const [groupName, setGroupName] = useState(GROUPS[0].name);
  const [snippetName, setSnippetName] = useState<string>();
  const [chosen, setChosen] = useState<string>();
  const [strategy, setStrategy] = useState(DEFAULT);
  const group = GROUPS.find(({ name }) => name === groupName) ?? GROUPS[0];
  const { name, protocols, note, write } =
    group.snippets.find((each) => each.name === snippetName) ?? group.snippets[0];
  const models = (catalog?.models ?? []).filter((model) => protocols.some((each) => model.protocols.includes(each)));
  const model = models.find((each) => each.name === chosen) ?? models[0];
  const text = catalog && write({ url: addressOf(catalog, strategy), model: model ?? EXAMPLE_MODEL });
  return (
    <section class="panel" aria-labelledby="call-title">
      <header class="panel-head">
        <h2 id="call-title">How to call it</h2>
        <Segmented label="Protocol or agents" value={group.name} options={named(GROUPS)} onChange={setGroupName} />
        <Segmented label="Called from" value={name} options={named(group.snippets)} onChange={setSnippetName} />
        <span class="grow" />
        {catalog !== undefined && catalog.strategies.length > 0 && (
          <Choice label="Strategy" value={strategy} options={[DEFAULT, ...catalog.strategies]} onChange={setStrategy} />
        )}
        {model !== undefined && models.length > 1 && (
          <Choice label="Model" value={model.name} options={models.map((each) => each.name)} onChange={setChosen} />
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

/** The name of an address without a strategy. */
const DEFAULT = 'default';

function addressOf({ publicUrl, strategies }: Catalog, strategy: string): string {
  return strategies.includes(strategy) ? `${publicUrl}/${strategy}` : publicUrl;
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly string[];
  readonly onChange: (value: string) => void;
}

function Choice({ label, value, options, onChange }: ChoiceProps) {
  return (
    <label class="inline-control">
      <span class="quiet">{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    </label>
  );
}

function named(things: readonly { readonly name: string }[]) {
  return things.map(({ name }) => ({ value: name, text: name }));
}
