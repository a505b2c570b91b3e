import { useState } from 'preact/hooks';
import { ask } from '../../api';
import { DecisionDialog } from '../../parts/dialog';
import { Field, Input } from '../../parts/field';
import { go } from '../../router';
import type { ShownProposal } from '../shapes';
import { PROPOSALS } from './proposal';

type Source = ShownProposal['source'];

/** The public addresses of the lists, as in core/configuration/proposals/list.ts. */
const ADDRESSES: Readonly<Record<Exclude<Source, 'file'>, string>> = {
  'models.dev': 'https://models.dev/api.json',
  litellm: 'https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json',
};

const SOURCES = [
  { value: 'models.dev', text: 'models.dev' },
  { value: 'litellm', text: 'LiteLLM' },
  { value: 'file', text: 'A file' },
] as const;

/** Reads a public list of prices, from its address or from a file, and opens the proposal. */
export function ReadListDialog() {
  const [source, setSource] = useState<Source>('models.dev');
  const [url, setUrl] = useState(ADDRESSES['models.dev']);
  const [file, setFile] = useState<File>();
  const choose = (value: string) => {
    const next = SOURCES.find((each) => each.value === value)?.value ?? 'file';
    setSource(next);
    if (next !== 'file') setUrl(ADDRESSES[next]);
  };
  const read = async () => {
    const origin = source === 'file' ? { text: (await file?.text()) ?? '' } : { url };
    return ask<ShownProposal>(PROPOSALS, { method: 'POST', body: { source, ...origin } });
  };
  return (
    <DecisionDialog
      title="Read a list of prices"
      verb="Read the list"
      isComplete={source !== 'file' || file !== undefined}
      text={<p class="quiet">It changes no price: you decide about each difference first.</p>}
      act={read}
      onDone={({ id }) => go(`/catalogue/${id}`)}
    >
      <Input label="List" options={SOURCES} value={source} onChange={choose} />
      {source === 'file' ? (
        <Field label="File" hint="A list of models.dev or LiteLLM, at most 20 MB.">
          {(control) => (
            <input
              {...control}
              type="file"
              accept=".json,application/json"
              onChange={({ currentTarget }) => setFile(currentTarget.files?.[0])}
            />
          )}
        </Field>
      ) : (
        <Input
          label="Address"
          hint="The gateway fetches it."
          value={url}
          onChange={setUrl}
          maxLength={2_000}
          isRequired
        />
      )}
    </DecisionDialog>
  );
}
