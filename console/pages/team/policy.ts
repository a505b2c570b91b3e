import type { FormPart, Values } from '../../parts/field';
import type { ApiKey } from '../../shapes';

type Policy = Pick<ApiKey, 'require' | 'requiredTags'>;

/** The fields for what every call of a key, or of a team's keys, demands of upstreams, and the tags that it must have. */
export function policyFields(of: Policy | undefined): readonly FormPart[] {
  return [
    {
      legend: 'Every call',
      fields: [
        {
          name: 'require',
          label: 'Demands of upstreams',
          hint: 'Such as region=eu; retention=none; trains=no. Calls that no upstream may serve are refused.',
          placeholder: 'Nothing',
          maxLength: 1_000,
          value: of?.require ?? '',
        },
        {
          name: 'requiredTags',
          label: 'Required tags',
          hint: 'Names with spaces between them, such as customer project.',
          placeholder: 'None',
          maxLength: 500,
          value: of?.requiredTags?.join(' ') ?? '',
        },
      ],
    },
  ];
}

/** Reads these fields as the API takes them: null for none. */
export function readPolicy({ require, requiredTags }: Values) {
  return { require: require ?? null, requiredTags: wordsOf(requiredTags) };
}

/** Reads a list separated by spaces or commas; null if the text is empty or absent. */
export function wordsOf(text = ''): readonly string[] | null {
  const list = text.split(/[\s,]+/).filter((each) => each !== '');
  return list.length === 0 ? null : list;
}
