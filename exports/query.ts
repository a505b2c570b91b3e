/** `tollgate/query`: checked readers of a route's query. */
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
