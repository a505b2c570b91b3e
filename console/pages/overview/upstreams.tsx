import { plural, showPercent } from '../../numbers';
import { Badge, type Tone } from '../../parts/badge';
import { BoneRows } from '../../parts/states';
import { TableFrame } from '../../parts/table-frame';
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

export function Upstreams({ upstreams }: { readonly upstreams: readonly Upstream[] | undefined }) {
  return (
    <section class="panel" aria-labelledby="upstreams-title">
      <header class="panel-head">
        <h2 id="upstreams-title">Upstreams</h2>
      </header>
      <TableFrame label="Upstreams">
        <table>
          <caption class="unseen">Upstreams and how they are</caption>
          <thead>
            <tr>
              <th scope="col">Upstream</th>
              <th scope="col">State</th>
              <th scope="col" class="number">
                Success
              </th>
              <th scope="col" class="number">
                First token
              </th>
              <th scope="col" class="from-m">
                Tier
              </th>
              <th scope="col" class="from-m">
                Models
              </th>
            </tr>
          </thead>
          <tbody>
            {upstreams === undefined && <BoneRows rows={2} columns={6} />}
            {upstreams?.map(({ name, state, successRate, firstTokenMs, tier, models }) => (
              <tr key={name}>
                <th scope="row" class="mono">
                  {name}
                </th>
                <td>
                  <Badge tone={STATES[state].tone}>{STATES[state].text}</Badge>
                </td>
                <td class="number">{successRate === null ? '–' : showPercent(successRate)}</td>
                <td class="number">{firstTokenMs === null ? '–' : showDuration(firstTokenMs)}</td>
                <td class="from-m quiet">{tier}</td>
                <td class="from-m quiet" title={models.join(', ')}>
                  {plural(models.length, 'model')}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {upstreams?.length === 0 && <p class="table-none quiet">The operator has configured no upstream.</p>}
      </TableFrame>
    </section>
  );
}
