import { fail } from '../../../core/base/errors';
import { parseUsd } from '../../../core/base/money';
import { compileCheck, type Settings } from '../../../core/base/settings';
import { pathText } from '../../../core/http/http';
import { CAPABILITIES, hourlyE8, type OfferedInstance } from './offering';

const RANGE = {
  type: 'object',
  additionalProperties: false,
  properties: { min: { type: 'number', minimum: 0 }, max: { type: 'number', minimum: 0 } },
} as const;

export const REQUIREMENTS = {
  type: 'object',
  additionalProperties: false,
  properties: {
    capabilities: { type: 'array', items: { enum: CAPABILITIES }, uniqueItems: true },
    regions: { type: 'array', items: { type: 'string', minLength: 1, maxLength: 100 }, minItems: 1, maxItems: 50 },
    cpu: RANGE,
    memoryGiB: RANGE,
    volumeGiB: RANGE,
    gpu: {
      type: 'object',
      additionalProperties: false,
      properties: { count: { type: 'integer', minimum: 1 }, model: { type: 'string', minLength: 1, maxLength: 100 } },
    },
    minContinuousRuntimeSeconds: { type: 'integer', minimum: 1 },
  },
} as const;

type Requirements = Settings<typeof REQUIREMENTS>;
type Range = { readonly min?: number; readonly max?: number };

const check = compileCheck<Requirements>(REQUIREMENTS);

/** Reads the requirements of a request for an offering. @throws REQUIREMENTS_INVALID that names the wrong field, with `param` as the start of its path */
export function readRequirements(value: unknown, param: string): Requirements {
  const checked = check(value);
  if ('problems' in checked) {
    const [first] = checked.problems;
    const at = [pathText([param]), ...(first?.path ?? [])].join('.');
    throw fail('REQUIREMENTS_INVALID', { param: at, message: `${at}: ${first?.message}` });
  }
  const { value: requirements } = checked;
  for (const name of ['cpu', 'memoryGiB', 'volumeGiB'] as const) {
    const { min = 0, max = Number.POSITIVE_INFINITY }: Range = requirements[name] ?? {};
    if (min > max) {
      const at = `${param}.${name}`;
      throw fail('REQUIREMENTS_INVALID', { param: at, message: `${at}: min is above max` });
    }
  }
  return requirements;
}

/** A choice of an offering: this one, or the cheapest one that meets requirements. */
export type OfferingChoice =
  | { readonly offeringId: string }
  | { readonly requirements: Requirements; readonly maxEstimatedHourlyUsd: string | undefined };

/** Returns the chosen offering. @throws OFFERING_NOT_FOUND, NO_MATCHING_OFFERING that name the wrong field, with `prefix` before it */
export function chooseOffering(
  offered: readonly OfferedInstance[],
  choice: OfferingChoice,
  prefix: string,
): OfferedInstance {
  if ('requirements' in choice) {
    const match = matchOffering(offered, choice.requirements, choice.maxEstimatedHourlyUsd);
    if (match === undefined) throw fail('NO_MATCHING_OFFERING', { param: `${prefix}requirements` });
    return match;
  }
  const found = offered.find(({ offering, isEnabled }) => isEnabled && offering.id === choice.offeringId);
  if (found === undefined) throw fail('OFFERING_NOT_FOUND', { param: `${prefix}offeringId` });
  return found;
}

/** Returns the cheapest available offering that meets the requirements. Among equal prices, the id decides. */
function matchOffering(
  offered: readonly OfferedInstance[],
  requirements: Requirements,
  maxHourlyUsd: string | undefined,
): OfferedInstance | undefined {
  const ceilingE8 = maxHourlyUsd === undefined ? undefined : parseUsd(maxHourlyUsd);
  return offered
    .filter(({ offering }) => offering.status === 'AVAILABLE')
    .filter((each) => meets(each, requirements))
    .filter(({ offering }) => ceilingE8 === undefined || hourlyE8(offering, 'RUNNING') <= ceilingE8)
    .sort(
      (one, other) =>
        Number(hourlyE8(one.offering, 'RUNNING') - hourlyE8(other.offering, 'RUNNING')) ||
        (one.offering.id < other.offering.id ? -1 : 1),
    )[0];
}

function meets({ offering }: OfferedInstance, wanted: Requirements): boolean {
  const { resources, capabilities, lifecycle, region } = offering;
  if (wanted.capabilities?.some((each) => !capabilities[each]) === true) return false;
  if (wanted.regions !== undefined && !wanted.regions.includes(region)) return false;
  for (const name of ['cpu', 'memoryGiB', 'volumeGiB'] as const) {
    const { min = 0, max = Number.POSITIVE_INFINITY }: Range = wanted[name] ?? {};
    if (resources[name] < min || resources[name] > max) return false;
  }
  const { gpu } = wanted;
  if (gpu !== undefined) {
    const fits = resources.gpu.some(
      ({ model, count }) => count >= (gpu.count ?? 1) && (gpu.model ?? model).toLowerCase() === model.toLowerCase(),
    );
    if (!fits) return false;
  }
  return (wanted.minContinuousRuntimeSeconds ?? 0) <= lifecycle.maxContinuousRuntimeSeconds;
}
