/** `tollgate/query`: functions that read and check the query parameters of a route. */
export {
  type Filters,
  flagReader,
  integerReader,
  PAGE_READERS,
  pageOf,
  type Reader,
  reader,
  readFilter,
  readQuery,
  readText,
  readTime,
  readUuid,
  wordReader,
  wordsReader,
} from '../core/http/query';
