import type { Schema } from '../base/settings';
import { adapterNames, findAdapter } from '../catalog/adapters';
import { gatewaySchema, type Loaded } from '../configuration/configuration';
import { type GATEWAY_SCHEMA, SYSTEM_SCHEMA } from '../configuration/schema';
import { settingsSchema } from '../gateway/manifest';
import type { LoadedPlugins } from './load-plugins';

type JsonSchema = Readonly<Record<string, unknown>>;

const DRAFT = 'http://json-schema.org/draft-07/schema#';

/** Returns the JSON Schema of gateway.config.yml for editors, with every policy, adapter and section that is loaded. */
export function publishedGatewaySchema({ policies, sections }: Loaded): JsonSchema {
  const own = gatewaySchema(sections).properties;
  const endpoint = own.serviceEndpoints.additionalProperties;
  const pipeline = own.pipelines.additionalProperties;
  const policyNames = { oneOf: policies.map(({ name, summary }) => ({ const: name, description: summary })) };
  const uses = policies.map(({ name, summary, schema }) => [name, policyUse(summary, schema)] as const);
  const policyEntry = { ...pipeline.properties.policies.items, additionalProperties: false };
  const steps = { ...pipeline.properties.policies, items: { ...policyEntry, properties: Object.fromEntries(uses) } };
  const { required, ...schema } = gatewaySchema(sections);
  return published('gateway.config.yml', 'The endpoints, upstreams and pipelines of calls through Tollgate.', {
    ...schema,
    required: required.filter((key) => key !== 'http'),
    oneOf: [{ required: ['http'] }, { required: ['https'] }],
    properties: {
      ...own,
      policies: { ...own.policies, items: policyNames },
      serviceEndpoints: { ...own.serviceEndpoints, additionalProperties: withAdapters(withPriceLists(endpoint)) },
      pipelines: {
        ...own.pipelines,
        additionalProperties: { ...pipeline, properties: { ...pipeline.properties, policies: steps } },
      },
    },
  });
}

/** Returns the JSON Schema of system.config.yml, with the settings of every package that is loaded. */
export function publishedSystemSchema({ manifests }: Pick<LoadedPlugins, 'manifests'>): JsonSchema {
  const { additionalProperties: anyPlugin } = SYSTEM_SCHEMA.properties.plugins;
  const known = manifests.map(({ name, tollgate }) => {
    const own = settingsSchema(tollgate) as { properties?: object; required?: readonly string[] };
    const summary = tollgate.plugins.map((plugin) => plugin.summary).join(' ') || 'The policies of a call.';
    const properties = { ...anyPlugin.properties, ...own.properties };
    const required = [...anyPlugin.required, ...(own.required ?? [])];
    return [name, { description: summary, type: 'object', additionalProperties: false, required, properties }] as const;
  });
  return published('system.config.yml', 'The plugins that Tollgate loads, and their settings.', {
    ...SYSTEM_SCHEMA,
    properties: {
      ...SYSTEM_SCHEMA.properties,
      plugins: { ...SYSTEM_SCHEMA.properties.plugins, properties: Object.fromEntries(known) },
    },
  });
}

function published(title: string, description: string, schema: object): JsonSchema {
  return { $schema: DRAFT, title, description, ...(orVariable(schema) as object) };
}

function policyUse(description: string, action: Schema): JsonSchema {
  const properties = { action: { description: 'Its settings.', ...action } };
  const items = { type: 'object', additionalProperties: false, properties };
  return { description, type: ['array', 'null'], maxItems: 1, items };
}

type Endpoint = typeof GATEWAY_SCHEMA.properties.serviceEndpoints.additionalProperties;

/** Makes the members that a price list contains optional for a model that names the list. */
function withPriceLists(endpoint: Endpoint) {
  const { required, ...model } = endpoint.properties.models.additionalProperties;
  const models = {
    ...endpoint.properties.models,
    additionalProperties: { ...model, anyOf: [{ required: ['from'] }, { required }] },
  };
  return { ...endpoint, properties: { ...endpoint.properties, models } };
}

/** Adds the settings of each adapter to the JSON Schema of an endpoint. An adapter's settings apply if the endpoint names that adapter. */
function withAdapters(endpoint: { readonly properties: object }): JsonSchema {
  const { adapter } = endpoint.properties as { adapter: object };
  const name = { enum: adapterNames() };
  const settings = adapterNames().map((each) => ({
    if: { required: ['adapter'], properties: { adapter: { const: each } } },
    // biome-ignore lint/suspicious/noThenProperty: the word of JSON Schema
    then: { properties: { adapterSettings: { description: `Settings of ${each}.`, ...findAdapter(each)?.schema } } },
  }));
  return {
    ...endpoint,
    properties: { ...endpoint.properties, adapter: { ...adapter, items: name, anyOf: [name, { type: 'array' }] } },
    allOf: settings,
  };
}

const VARIABLE = { type: 'string', pattern: '\\$\\{[A-Za-z0-9_]+(:-[^}]*)?\\}' } as const;

/** Allows `${NAME}` in the file where a number, a boolean or one of several words is expected. */
function orVariable(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(orVariable);
  if (schema === null || typeof schema !== 'object') return schema;
  const { description, default: standard, ...rest } = schema as JsonSchema;
  const about = {
    ...(description !== undefined && { description }),
    ...(standard !== undefined && { default: standard }),
  };
  const isScalar = rest['enum'] !== undefined || rest['pattern'] !== undefined || isScalarType(rest['type']);
  if (isScalar) return { ...about, anyOf: [rest, VARIABLE] };
  return { ...about, ...mapSubschemas(rest) };
}

function isScalarType(type: unknown): boolean {
  return [type].flat().some((each) => each === 'integer' || each === 'number' || each === 'boolean');
}

/** Applies `orVariable` to the subschemas of a schema, but not to values that only look like a schema. */
function mapSubschemas(schema: JsonSchema): JsonSchema {
  return Object.fromEntries(
    Object.entries(schema).map(([word, value]) => {
      if (word === 'properties') {
        const within = Object.entries(value as object).map(([name, each]) => [name, orVariable(each)] as const);
        return [word, Object.fromEntries(within)];
      }
      return [word, SUBSCHEMAS.has(word) ? orVariable(value) : value];
    }),
  );
}

const SUBSCHEMAS: ReadonlySet<string> = new Set(['additionalProperties', 'items', 'anyOf', 'allOf', 'oneOf', 'then']);
