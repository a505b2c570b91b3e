import { createHash } from 'node:crypto';
import { v5 } from 'uuid';
import { formatUsd, MAX_AMOUNT_E8, parseUsd } from '../../../core/base/money';
import { duration, flag, group, integer, list, number, text, word } from '../../../core/base/setting-schemas';
import { parseDuration, type Settings } from '../../../core/base/settings';
import type { InstanceSpec, SupplierDriver } from '../suppliers/supplier';

export const CAPABILITIES = ['exec', 'backgroundExec', 'files', 'ports'] as const;
export type Capability = (typeof CAPABILITIES)[number];

const USD_PER_HOUR = {
  description: 'Decimal USD per hour, at most 8 decimals.',
  type: ['number', 'string'],
} as const;

const OFFERING = {
  type: 'object',
  additionalProperties: false,
  required: ['supplier', 'resources', 'hourlyUsd'],
  properties: {
    supplier: text('A supplier of the sandbox plugin in system.config.yml.', { minLength: 1 }),
    supplierSettings: {
      description: "Settings for the supplier's driver, such as an image or a template.",
      type: 'object',
    },
    enabled: flag('With false, existing sandboxes continue and no new ones are created.', { default: true }),
    region: text('The region of the sandbox; callers may require it.', { minLength: 1, default: 'local' }),
    isolation: {
      description: "What keeps it from others; default: as its supplier's driver says.",
      type: 'string',
      enum: ['virtual-machine', 'container', 'namespaces', 'none'],
    },
    resources: group(
      'The size of the sandbox.',
      {
        cpu: number('Cores.', { exclusiveMinimum: 0 }),
        memoryGiB: number('Memory in GiB.', { exclusiveMinimum: 0 }),
        volumeGiB: number('Disk in GiB.', { minimum: 0, default: 0 }),
        gpu: {
          description: 'Graphics processors by model.',
          type: 'array',
          default: [],
          items: {
            type: 'object',
            additionalProperties: false,
            required: ['model', 'count'],
            properties: {
              model: text('Its name.', { minLength: 1 }),
              count: integer('How many.', { minimum: 1 }),
            },
          },
        },
      },
      { required: ['cpu', 'memoryGiB'] },
    ),
    capabilities: list(
      'What callers may do with the sandbox, as far as its driver can.',
      { enum: CAPABILITIES },
      { uniqueItems: true, default: [...CAPABILITIES] },
    ),
    suspension: word(
      'What a suspended sandbox keeps; with none it cannot be suspended.',
      ['memory', 'filesystem', 'none'],
      { default: 'none' },
    ),
    resumeOnAccess: flag('A command, a file or a port may resume the sandbox; requires `suspension` other than none.', {
      default: false,
    }),
    maxContinuousRuntime: duration('Longest time that a sandbox may run before it is ended.', { default: '24h' }),
    provisioningLimit: duration('Time for the start; a sandbox that is not running then has failed.', {
      default: '120s',
    }),
    hourlyUsd: group(
      'Its price in each state.',
      {
        PROVISIONING: { ...USD_PER_HOUR, default: 0 },
        RUNNING: USD_PER_HOUR,
        SUSPENDED: { ...USD_PER_HOUR, default: 0 },
      },
      { required: ['RUNNING'] },
    ),
  },
} as const;

/** The schema of `offerings:` in gateway.config.yml. */
export const OFFERINGS = {
  description: 'The sandboxes that callers can create, by name; one per supplier and size.',
  type: 'object',
  propertyNames: { pattern: '^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$' },
  additionalProperties: OFFERING,
} as const;

type OfferingSettings = Settings<typeof OFFERING>;
export type OfferingsSection = Readonly<Record<string, OfferingSettings>>;

/** The states of a sandbox that have a price. */
export type BilledState = 'PROVISIONING' | 'RUNNING' | 'SUSPENDED';

/** An offering as callers see it. A sandbox keeps the version of the offering with which it was created. */
export interface Offering {
  readonly id: string;
  readonly name: string;
  readonly supplier: string;
  readonly status: 'AVAILABLE' | 'UNAVAILABLE';
  readonly region: string;
  readonly isolation: string;
  readonly resources: {
    readonly cpu: number;
    readonly memoryGiB: number;
    readonly volumeGiB: number;
    readonly gpu: readonly { readonly model: string; readonly count: number }[];
  };
  readonly capabilities: Readonly<Record<Capability, boolean>>;
  readonly lifecycle: {
    readonly suspension: { readonly supported: boolean; readonly preserves: 'memory' | 'filesystem' | null };
    readonly resumeOnAccess: boolean;
    readonly maxContinuousRuntimeSeconds: number;
  };
  readonly billing: {
    readonly currency: 'USD';
    readonly estimatedHourlyUsdByState: Readonly<Record<BilledState, string>>;
    readonly initialReservationUsd: string;
  };
}

/** An offering with the settings that only the supplier and the reconciler need. */
export interface OfferedInstance {
  readonly offering: Offering;
  /** The revision of the offering. It changes when a value changes that a quote promises. */
  readonly revision: string;
  readonly spec: InstanceSpec;
  readonly provisioningLimitMs: number;
  /** Whether the configuration allows new sandboxes of this offering. They also need a supplier that the gateway has opened. */
  readonly isEnabled: boolean;
}

/** The UUID namespace of offering ids. An id is derived from the offering's name, so every node computes the same id after every restart. */
const NAMESPACE = 'b6a7a4b0-5f0e-5d5a-9c55-3f0a1e8a2c11';

export function offeringId(name: string): string {
  return v5(name, NAMESPACE);
}

/** Returns the offerings of a configuration. One that is disabled, or whose supplier is not open, is shown as unavailable. */
export function readOfferings(
  section: OfferingsSection | undefined,
  drivers: ReadonlyMap<string, Pick<SupplierDriver, 'capabilities'>>,
  holdSeconds: number,
): readonly OfferedInstance[] {
  return Object.entries(section ?? {}).map(([name, settings]) =>
    readOffering(name, settings, drivers.get(settings.supplier)?.capabilities, holdSeconds),
  );
}

export function readOffering(
  name: string,
  settings: OfferingSettings,
  driver: SupplierDriver['capabilities'] | undefined,
  holdSeconds: number,
): OfferedInstance {
  const can = { ...driver, backgroundExec: driver?.exec };
  const offers = (each: Capability) => settings.capabilities.includes(each) && can[each] !== false;
  const { resources, suspension, hourlyUsd } = settings;
  const rates: Record<BilledState, string> = {
    PROVISIONING: usd(hourlyUsd.PROVISIONING),
    RUNNING: usd(hourlyUsd.RUNNING),
    SUSPENDED: usd(hourlyUsd.SUSPENDED),
  };
  const promised = {
    id: offeringId(name),
    name,
    supplier: settings.supplier,
    region: settings.region,
    isolation: settings.isolation ?? driver?.isolation ?? 'none',
    resources,
    capabilities: Object.fromEntries(CAPABILITIES.map((each) => [each, offers(each)])) as Record<Capability, boolean>,
    lifecycle: {
      suspension: { supported: suspension !== 'none', preserves: suspension === 'none' ? null : suspension },
      resumeOnAccess: settings.resumeOnAccess,
      maxContinuousRuntimeSeconds: Math.floor(parseDuration(settings.maxContinuousRuntime) / 1_000),
    },
    billing: {
      currency: 'USD' as const,
      estimatedHourlyUsdByState: rates,
      initialReservationUsd: formatUsd(costE8(maxRateOfStatesE8(rates), holdSeconds * 1_000)),
    },
  };
  const spec: InstanceSpec = {
    ...resources,
    ports: offers('ports'),
    settings: settings.supplierSettings ?? {},
  };
  return {
    offering: { ...promised, status: settings.enabled && driver !== undefined ? 'AVAILABLE' : 'UNAVAILABLE' },
    revision: createHash('sha256')
      .update(JSON.stringify([promised, spec]))
      .digest('hex')
      .slice(0, 16),
    spec,
    provisioningLimitMs: parseDuration(settings.provisioningLimit),
    isEnabled: settings.enabled,
  };
}

/** Returns an amount as decimal text. YAML reads an unquoted amount as a number, so the operator quotes one that a number cannot hold exactly. */
function usd(value: number | string): string {
  return formatUsd(parseUsd(typeof value === 'number' ? decimal(value) : value));
}

function decimal(value: number): string {
  const text = value.toFixed(8);
  if (Number(text) !== value) throw new RangeError('expected at most 8 decimals');
  return text;
}

/** The highest hourly price: a sandbox's cost of one year must fit into one amount of the ledger. */
const MAX_HOURLY_E8 = MAX_AMOUNT_E8 / (366n * 24n);
const TOO_MUCH = `expected at most USD ${formatUsd(MAX_HOURLY_E8)} an hour`;

/** Returns the mistakes in the offerings' section that its schema cannot find. */
export function checkOfferings(section: OfferingsSection): readonly { path: (string | number)[]; message: string }[] {
  return Object.entries(section).flatMap(([name, settings]) => {
    const problems = Object.entries(settings.hourlyUsd).flatMap(([state, value]) => {
      try {
        const isTooMuch = parseUsd(usd(value)) > MAX_HOURLY_E8;
        return isTooMuch ? [{ path: [name, 'hourlyUsd', state], message: TOO_MUCH }] : [];
      } catch (error) {
        return [{ path: [name, 'hourlyUsd', state], message: (error as Error).message }];
      }
    });
    if (settings.resumeOnAccess && settings.suspension === 'none') {
      problems.push({
        path: [name, 'resumeOnAccess'],
        message: '`resumeOnAccess` requires `suspension` other than `none`',
      });
    }
    return problems;
  });
}

export function hourlyE8(offering: Offering, state: BilledState): bigint {
  return parseUsd(offering.billing.estimatedHourlyUsdByState[state]);
}

function maxRateOfStatesE8(rates: Readonly<Record<BilledState, string>>): bigint {
  return Object.values(rates).map(parseUsd).reduce(larger, 0n);
}

export function larger(one: bigint, other: bigint): bigint {
  if (one > other) return one;
  return other;
}

const MS_PER_HOUR = 3_600_000n;

/** Returns the exact cost of a duration, rounded up once to the ledger's unit. */
export function costE8(hourly: bigint, ms: number): bigint {
  return (hourly * BigInt(Math.max(0, ms)) + MS_PER_HOUR - 1n) / MS_PER_HOUR;
}
