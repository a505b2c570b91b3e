/** `tollgate/shape`: short words for the JSON Schema of what routes take and answer. */
export { listOf, mapOf, object, objectWith, oneOf, orNull, pageShape, shape } from '../core/http/shape';
