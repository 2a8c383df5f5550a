# SPDX-License-Identifier: Apache-2.0
# The page of memory maps (ir/plan/map/page) as one string literal: MapPage.inc, which Html.cpp includes.
set(PAGE ${CMAKE_SOURCE_DIR}/ir/plan/map/page)
set(SCRIPTS data live strips view raster panes panel main) # in this order
set(SCRIPT "")
foreach(NAME ${SCRIPTS})
  file(READ ${PAGE}/${NAME}.js TEXT)
  string(APPEND SCRIPT "${TEXT}")
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PAGE}/${NAME}.js)
endforeach()
file(READ ${PAGE}/style.css STYLE)
file(READ ${PAGE}/page.html TEXT)
set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PAGE}/style.css ${PAGE}/page.html)
string(REPLACE "@STYLE@" "${STYLE}" TEXT "${TEXT}")
string(REPLACE "@SCRIPT@" "${SCRIPT}" TEXT "${TEXT}")
# What comes before and after the data.
string(REPLACE "@DATA@" ")page\", R\"page(" TEXT "${TEXT}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/ir/plan/map/MapPage.inc CONTENT "R\"page(${TEXT})page\"" @ONLY)
