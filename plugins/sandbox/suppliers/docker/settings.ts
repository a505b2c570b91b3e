import { compileCheck, DURATION, type Settings } from '../../../../core/settings';
import { Rejected } from '../../../../core/supplier';

/** Where the engine is and how its instances reach each other: they do not. */
export const SUPPLIER_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    socket: { description: "The engine's local socket.", type: 'string', default: '/var/run/docker.sock' },
    network: {
      description:
        'The network of instances whose ports are used; made when it is missing: no way out, none between them.',
      type: 'string',
      pattern: '^[a-zA-Z0-9][a-zA-Z0-9_.-]+$',
      default: 'tollgate',
    },
    answersWithin: {
      ...DURATION,
      description: 'An engine that takes longer to say how things are is silent.',
      default: '10s',
    },
  },
} as const;

export const OFFERING_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['image'],
  properties: {
    image: {
      description: 'It has to be at the engine already, and to hold sh, find, grep and stat.',
      type: 'string',
      minLength: 1,
    },
    user: {
      description: 'Numeric user and group of everything that runs.',
      type: 'string',
      pattern: '^[0-9]+:[0-9]+$',
      default: '1000:1000',
    },
    maxProcesses: { type: 'integer', minimum: 8, default: 256 },
    limitVolume: {
      description:
        "Hold the disk to the offering's volumeGiB; needs a storage driver that can (overlay2 on xfs with pquota).",
      type: 'boolean',
      default: false,
    },
  },
} as const;

export type SupplierSettings = Settings<typeof SUPPLIER_SCHEMA>;
export type OfferingSettings = Settings<typeof OFFERING_SCHEMA>;

const checkOffering = compileCheck<OfferingSettings>(OFFERING_SCHEMA);

/** With their defaults. @throws Rejected */
export function readOfferingSettings(given: unknown): OfferingSettings {
  const checked = checkOffering(given);
  if ('value' in checked) return checked.value;
  const problems = checked.problems.map(({ path, message }) => [...path, message].join(' '));
  throw new Rejected(`the offering's supplierSettings: ${problems.join('; ')}`);
}
