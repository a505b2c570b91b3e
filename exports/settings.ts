/** `tollgate/settings`: settings of policies and plugins, checked by JSON Schema. */
export { compileCheck, DURATION, type Problem, parseDuration, type Schema, type Settings } from '../core/base/settings';
