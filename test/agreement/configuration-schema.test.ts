import { Ajv } from 'ajv';
import { expect } from 'chai';
import { parse } from 'yaml';
import { configurationReader } from '../../core/configuration/configuration';
import { loadPlugins } from '../../core/serving/load-plugins';
import { publishedGatewaySchema, publishedSystemSchema } from '../../core/serving/published-schema';
import { PROJECT, textOf } from '../support/sources';

const loaded = loadPlugins(PROJECT, {});
const PUBLISHED = { gateway: publishedGatewaySchema(loaded), system: publishedSystemSchema(loaded) };

const ajv = new Ajv({ strict: false, allErrors: true });

for (const name of ['gateway', 'system'] as const) {
  const yaml = `${name}.config.yml`;
  const json = `schemas/${name}.config.schema.json`;

  describe(`the schema of ${yaml}`, () => {
    it('equals the schema that `npm run schemas` would write from the settings in the code', () => {
      expect(JSON.parse(textOf(json))).to.deep.equal(PUBLISHED[name]);
    });

    it('is referenced in the first line of its YAML file, for editors', () => {
      expect(textOf(yaml).split('\n')[0]).to.equal(`# yaml-language-server: $schema=./${json}`);
    });

    it('accepts the shipped file, in which environment variables do not yet have their values', () => {
      const validate = ajv.compile(PUBLISHED[name]);
      expect(validate(parse(textOf(yaml))), JSON.stringify(validate.errors)).to.equal(true);
    });

    it('has a description for every property', () => {
      expect(undescribed(PUBLISHED[name])).to.deep.equal([]);
    });
  });
}

describe('the schema of gateway.config.yml', () => {
  const validate = ajv.compile(PUBLISHED.gateway);
  // biome-ignore lint/suspicious/noExplicitAny: a file to be broken
  const broken = (breaks: (config: any) => void): boolean => {
    const config = parse(textOf('gateway.config.yml')) as object;
    breaks(config);
    return validate(config);
  };

  it('rejects the same names, settings and values as the gateway', () => {
    expect(broken((config) => config.policies.push('rate-limiter'))).to.equal(false);
    expect(broken((config) => config.pipelines.cost.policies.push({ 'fail-over': null }))).to.equal(false);
    expect(broken((config) => config.pipelines.cost.policies.push({ failover: [{ action: { tries: 2 } }] }))).to.equal(
      false,
    );
    expect(broken((config) => delete config.serviceEndpoints.demo.models['demo-model'].price)).to.equal(false);
    expect(broken((config) => (config.serviceEndpoints.demo.adapter = 'mesages'))).to.equal(false);
    expect(broken((config) => (config.pipelinez = {}))).to.equal(false);
  });

  it('has every section of every plugin, and the gateway can read the shipped file too', () => {
    const { properties } = PUBLISHED.gateway as { properties: object };
    expect(Object.keys(properties)).to.include.members([...loaded.sections.keys()]);
    expect(configurationReader(loaded)(PROJECT, {}).pipelines).not.to.have.length(0);
  });
});

interface Described {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Described>>;
  readonly [word: string]: unknown;
}

/** Lists the paths of properties without a description, in nested schemas too. */
function undescribed(schema: Described, path = ''): string[] {
  const within = ['additionalProperties', 'items', 'then', 'anyOf', 'allOf', 'oneOf'].flatMap((word) =>
    [schema[word]].flat().filter((each): each is Described => each !== null && typeof each === 'object'),
  );
  return [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, each]) => [
      ...(each.description === undefined ? [`${path}.${name}`] : []),
      ...undescribed(each, `${path}.${name}`),
    ]),
    ...within.flatMap((each) => undescribed(each, path)),
  ];
}
