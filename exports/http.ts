/** `tollgate/http`: functions that read request bodies and send answers. */
export { invalidField, jsonBody, largeJsonBody, readBytes, sendError, sendJson, setRequestId } from '../core/http/http';
