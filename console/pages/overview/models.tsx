import { useState } from 'preact/hooks';
import { exactUsd } from '../../money';
import { plural, showShortCount } from '../../numbers';
import { Icon } from '../../parts/icon';
import { BoneRows } from '../../parts/states';
import { TableFrame } from '../../parts/table-frame';
import type { Model } from '../../shapes';

/** So many need no search. */
const FEW = 8;

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
      <TableFrame label="Models and prices">
        <table>
          <caption class="unseen">Models and what a million tokens cost</caption>
          <thead>
            <tr>
              <th scope="col">Model</th>
              <th scope="col" class="number">
                Input
              </th>
              <th scope="col" class="number">
                Output
              </th>
              <th scope="col" class="number">
                Cache read
              </th>
              <th scope="col" class="number from-m">
                Cache write
              </th>
              <th scope="col" class="number from-m">
                Context
              </th>
              <th scope="col" class="number from-m">
                Most output
              </th>
              <th scope="col" class="from-l">
                Protocols
              </th>
              <th scope="col" class="from-m">
                Upstreams
              </th>
            </tr>
          </thead>
          <tbody>
            {shown === undefined && <BoneRows rows={3} columns={9} />}
            {shown?.map((model) => (
              <tr key={model.name}>
                <th scope="row">
                  <span class="mono">{model.name}</span>
                  {model.aliases.length > 0 && <span class="faint small sub cut">also {model.aliases.join(', ')}</span>}
                </th>
                <td class="number">{exactUsd(model.pricePerMillion.input)}</td>
                <td class="number">{exactUsd(model.pricePerMillion.output)}</td>
                <td class="number">{exactUsd(model.pricePerMillion.cacheRead)}</td>
                <td class="number from-m">{exactUsd(model.pricePerMillion.cacheWrite)}</td>
                <td class="number from-m">{showShortCount(model.context)}</td>
                <td class="number from-m">{showShortCount(model.maxOutput)}</td>
                <td class="from-l quiet">{model.protocols.join(', ')}</td>
                <td class="from-m quiet" title={model.upstreams.join(', ')}>
                  {model.upstreams.length === 1 ? model.upstreams[0] : plural(model.upstreams.length, 'upstream')}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {shown?.length === 0 && (
          <p class="table-none quiet">
            {wanted === ''
              ? 'No model can be called: the operator has configured none.'
              : `No model is called “${words}”.`}
          </p>
        )}
      </TableFrame>
    </section>
  );
}
