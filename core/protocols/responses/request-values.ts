import { asObject, type JsonObject } from '../../json-values';
import type { FormedTool, ToolRule } from '../request-table';

export function shellForm({ environment }: JsonObject): string {
  return asObject(environment)?.['type'] === 'local' ? 'local' : 'container';
}

export function searchForm({ execution }: JsonObject): string {
  return execution === 'client' ? 'client' : 'server';
}

/** Returns the rules of the code interpreter. A container is priced by its size; the usual size costs the meter's price. */
export function codeInterpreter(search: ToolRule, unpriced: ToolRule): FormedTool {
  const usual: ToolRule = { ...search, meter: 'codeInterpreter' };
  return {
    forms: {
      usual,
      files: { ...usual, names: 'file_id' },
      'named container': { ...usual, names: 'container' },
      'other size': unpriced,
    },
    formOf: ({ container }) => {
      if (typeof container === 'string') return 'named container';
      const { type, memory_limit: size, file_ids } = asObject(container) ?? {};
      if (type !== 'auto') return undefined;
      if ((size ?? '1g') !== '1g') return 'other size';
      const files = file_ids ?? [];
      return Array.isArray(files) && files.length === 0 ? 'usual' : 'files';
    },
  };
}
