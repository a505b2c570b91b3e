import type { Configured } from './gateway';

interface BrokenConfiguration {
  readonly what: string;
  /** Breaks a valid configuration with an upstream `acme`. A returned text replaces the whole file. */
  readonly breaks: (config: Configured) => string | void;
  /** Matches the error: file, line, column and reason. */
  readonly says: RegExp;
}

/** Twelve invalid versions of gateway.config.yml, which the start and a reload must refuse. */
export const BROKEN_CONFIGURATIONS: readonly BrokenConfiguration[] = [
  {
    what: 'a file that is not YAML',
    breaks: () => 'http: { port: 0\nadmin: [',
    says: /gateway\.config\.yml:\d+:\d+: /,
  },
  {
    what: 'an unknown policy',
    breaks: (config) => void config['policies'].push('rate-limiter'),
    says: /gateway\.config\.yml:\d+:\d+: .*policy "rate-limiter" does not exist/,
  },
  {
    what: 'policies in a wrong order',
    breaks: (config) => void config['pipelines'].quality.policies.reverse(),
    says: /gateway\.config\.yml:\d+:\d+: .*"quality".*needs/,
  },
  {
    what: 'an unknown setting',
    breaks: (config) => {
      failoverOf(config).maxAttemps = 3;
    },
    says: /gateway\.config\.yml:\d+:\d+: .*did you mean "maxAttempts"/,
  },
  {
    what: 'a setting out of bounds',
    breaks: (config) => {
      failoverOf(config).maxAttempts = 0;
    },
    says: /gateway\.config\.yml:\d+:\d+: .*maxAttempts.*at least 1/,
  },
  {
    what: 'a model without a price',
    breaks: (config) => void delete config['serviceEndpoints'].acme.models['acme-large'].price,
    says: /gateway\.config\.yml:\d+:\d+: .*"price" is missing/,
  },
  {
    what: 'an unknown adapter',
    breaks: (config) => {
      config['serviceEndpoints'].acme.adapter = 'mesages';
    },
    says: /gateway\.config\.yml:\d+:\d+: .*adapter "mesages" does not exist; did you mean "messages"/,
  },
  {
    what: 'a pipeline with an unknown endpoint',
    breaks: (config) => {
      config['pipelines'].cost.apiEndpoints = ['csot'];
    },
    says: /gateway\.config\.yml:\d+:\d+: .*endpoint "csot" does not exist; did you mean "cost"/,
  },
  {
    what: 'an endpoint in two pipelines',
    breaks: (config) => void config['pipelines'].cost.apiEndpoints.push('speed'),
    says: /gateway\.config\.yml:\d+:\d+: .*endpoint "speed" already belongs to pipeline "speed"/,
  },
  {
    what: 'two endpoints on one path',
    breaks: (config) => void config['apiEndpoints'].cost.paths.push('/speed/v1/messages'),
    says: /gateway\.config\.yml:\d+:\d+: .*"\/speed\/v1\/messages" is already served by endpoint "speed"/,
  },
  {
    what: 'an unknown top-level key',
    breaks: (config) => {
      config['pipelinez'] = {};
    },
    says: /gateway\.config\.yml:\d+:\d+: .*unknown setting "pipelinez"; did you mean "pipelines"/,
  },
  {
    what: 'an environment variable that is not set',
    breaks: (config) => {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: so a variable is written in YAML
      config['serviceEndpoints'].acme.url = 'http://${NO_SUCH_HOST}';
    },
    says: /gateway\.config\.yml:\d+:\d+: .*environment variable NO_SUCH_HOST is not set/,
  },
];

function failoverOf(config: Configured): Record<string, unknown> {
  const entry = config['pipelines'].quality.policies.find((each: object) => 'failover' in each);
  return entry.failover[0].action;
}
