/** `tollgate/http`: reading bodies and answering. */
export { invalidField, jsonBody, largeJsonBody, readBytes, sendError, sendJson, setRequestId } from '../core/http/http';
