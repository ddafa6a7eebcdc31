export const merge = {
  title: 'Changed meanwhile',
  sentence: 'Another change was saved since you opened this. Choose for each field that both changed.',
  noClash: 'Another change was saved since you opened this. The two changes touch different fields.',
  field: 'Field',
  base: 'Before',
  yours: 'Yours',
  theirs: 'Theirs',
  save: 'Save both',
}
