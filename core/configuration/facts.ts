import { type ModelFacts, UNKNOWN } from '../catalog/facts';
import type { LocatedProblem } from './problems';
import type { FactSettings } from './schema';

/** Returns the facts of a model, of which those of its upstream are a part; undefined if nothing is declared. `created` is the model's own setting. */
export function readFacts(settings: FactSettings, created: string | undefined): ModelFacts | undefined {
  const { region, retention, trains, source: _, date: __, ...others } = settings;
  const regions = region === undefined ? undefined : [region].flat();
  const released = others.released ?? created;
  const facts: ModelFacts = {
    ...others,
    ...(released !== undefined && { released }),
    ...(regions !== undefined && !regions.includes(UNKNOWN) && { region: regions }),
    ...(retention !== undefined &&
      retention !== UNKNOWN && { retention: retention === 'none' ? 0 : Number(retention) }),
    ...(trains !== undefined && trains !== UNKNOWN && { trains: trains === 'yes' }),
  };
  return Object.keys(facts).length === 0 ? undefined : facts;
}

/** Adds a problem for each date that no calendar has. */
export function checkDays(path: readonly string[], facts: FactSettings | undefined, problems: LocatedProblem[]): void {
  for (const name of ['released', 'retires', 'date'] as const) {
    const day = facts?.[name];
    if (day !== undefined && !isDay(day))
      problems.push({ path: [...path, name], message: 'is no day of the calendar' });
  }
}

function isDay(text: string): boolean {
  const time = new Date(text);
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(text);
}
