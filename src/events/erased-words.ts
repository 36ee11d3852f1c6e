/** What stands in the place of erased words. The page reads it too, so it stands apart from the schemas. */
export const ERASED_WORDS = '[erased]';
