/** What is said of an event whose words are erased, all or some: `[erased]` stands in their place. */
export const ERASED = 'words erased';
