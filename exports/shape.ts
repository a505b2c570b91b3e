/** `tollgate/shape`: helpers that write the JSON Schema of routes' requests and answers. */
export { listOf, mapOf, object, objectWith, oneOf, orNull, pageShape, shape } from '../core/http/shape';
