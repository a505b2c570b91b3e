import { duration, flag, group, integer, text } from '../../../../core/base/setting-schemas';
import { compileCheck, type Settings } from '../../../../core/base/settings';
import { Rejected } from '../supplier';

export const SUPPLIER_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    socket: text("The engine's local socket.", { default: '/var/run/docker.sock' }),
    network: text(
      'A network that instances with ports join; made when it is missing, without a way out. They reach what listens on this machine there. Absent: they have a loopback network alone, which the gateway joins to reach a port; it needs root for that.',
      { pattern: '^[a-zA-Z0-9][a-zA-Z0-9_.-]+$' },
    ),
    runtime: text(
      "The engine's runtime that runs instances, such as runsc of gVisor; absent: the engine's own choice.",
      { pattern: '^[a-zA-Z0-9][a-zA-Z0-9_.-]*$' },
    ),
    answersWithin: duration('How long to wait for the status of the engine before it counts as silent.', {
      default: '10s',
    }),
  },
} as const;

export const OFFERING_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  required: ['image'],
  properties: {
    image: text('The image must be at the engine already, and contain sh, find, grep and stat.', { minLength: 1 }),
    user: text('Numeric user and group of everything that runs.', { pattern: '^[0-9]+:[0-9]+$', default: '1000:1000' }),
    maxProcesses: { type: 'integer', minimum: 8, default: 256 },
    ulimits: group(
      'Limits of each process, soft and hard. Processes are counted by maxProcesses.',
      {
        nofile: integer('Open files.', { minimum: 64, default: 4_096 }),
        core: integer('Bytes of a core dump.', { minimum: 0, default: 0 }),
        fsize: integer('Bytes of a file; absent: no limit.', { minimum: 0 }),
      },
      { default: {} },
    ),
    limitVolume: flag(
      "Hold the disk to the offering's volumeGiB, or 10 GiB: true, or the instance is refused; false: never; absent: where the engine's storage driver can.",
    ),
    readOnlyRoot: flag(
      "The root cannot be written to. /workspace and /tmp are in memory, with the offering's volumeGiB each, or half of its memory.",
      { default: false },
    ),
  },
} as const;

export type DockerSettings = Settings<typeof SUPPLIER_SCHEMA>;
export type OfferingSettings = Settings<typeof OFFERING_SCHEMA>;

const checkOffering = compileCheck<OfferingSettings>(OFFERING_SCHEMA);

/** Validates an offering's settings and fills in the defaults. @throws Rejected */
export function readOfferingSettings(given: unknown): OfferingSettings {
  const checked = checkOffering(given);
  if ('value' in checked) return checked.value;
  const problems = checked.problems.map(({ path, message }) => [...path, message].join(' '));
  throw new Rejected(`the offering's supplierSettings: ${problems.join('; ')}`);
}
