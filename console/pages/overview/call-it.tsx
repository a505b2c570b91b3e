import { useState } from 'preact/hooks';
import { Panel } from '../../parts/page';
import { Snippet } from '../../parts/snippet';
import { Choice, Segmented } from '../../parts/toolbar';
import { hrefOf } from '../../router';
import type { Catalog } from '../../shapes';
import { type Call, GROUPS } from './snippets';

/** The model that snippets show if the account has no model with a fitting protocol. */
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
  const examples = (
    <>
      <Segmented label="Protocol or agents" value={group.name} options={named(GROUPS)} onChange={setGroupName} />
      <Segmented label="Called from" value={name} options={named(group.snippets)} onChange={setSnippetName} />
    </>
  );
  const strategies = [{ name: DEFAULT }, ...(catalog?.strategies ?? []).map((each) => ({ name: each }))];
  const choices = (
    <>
      {strategies.length > 1 && (
        <Choice label="Strategy" value={strategy} options={named(strategies)} onChange={setStrategy} />
      )}
      {model !== undefined && models.length > 1 && (
        <Choice label="Model" value={model.name} options={named(models)} onChange={setChosen} />
      )}
    </>
  );
  return (
    <Panel title="How to call it" beside={examples} actions={choices}>
      <Snippet name={`${name}, ${group.name}`} text={text} />
      <p class="panel-foot quiet small">
        {note !== undefined && `${note} `}
        {catalog !== undefined &&
          model === undefined &&
          `No model that you may call speaks ${protocols.join(' or ')}. `}
        <code>TOLLGATE_API_KEY</code> is an exported variable with a key from <a href={hrefOf('/keys')}>API Keys</a>.
        Anthropic's SDKs and Claude Code take the base address as it is, all others with <code>/v1</code>.
      </p>
    </Panel>
  );
}

/** The name of the choice "no strategy", which uses the public address without a strategy. */
const DEFAULT = 'default';

function addressOf({ publicUrl, strategies }: Catalog, strategy: string): string {
  return strategies.includes(strategy) ? `${publicUrl}/${strategy}` : publicUrl;
}

function named(things: readonly { readonly name: string }[]) {
  return things.map(({ name }) => ({ value: name, text: name }));
}
